package testfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/sync/errgroup"

	"github.com/refit-dev/refit/test/fleet/artefacts"
	"github.com/refit-dev/refit/test/fleet/cluster"
	"github.com/refit-dev/refit/test/fleet/daemon"
	"github.com/refit-dev/refit/test/fleet/hosts"
	"github.com/refit-dev/refit/test/fleet/state"
)

const (
	// bootTimeout covers many hosts booting at once on few cores.
	bootTimeout = 3 * time.Minute

	// firstMinor is the oldest Kubernetes minor whose kubeadm reads the configuration we write.
	firstMinor = 31
)

// Up brings the fleet up. It can be repeated: what is up stays, what is missing, also after a crash of an earlier Up, is
// made, and hosts that are off are started.
func Up(ctx context.Context, o Options) (*Fleet, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	unlock, err := state.Lock(o.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	record, fresh, err := o.record()
	if err != nil {
		return nil, err
	}
	u := &bringUp{fleet: &Fleet{record: record}, fresh: fresh, say: newProgress(o.Progress)}
	steps := []func(context.Context) error{u.collect, u.claim, u.serve, u.layer, u.boot}
	if !record.NoCluster {
		steps = append(steps, u.cluster, u.kubeconfig)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("bringing up fleet %s: %w", o.Name, err)
		}
	}
	u.summary(o)
	return u.fleet, nil
}

func (o Options) check() error {
	if err := state.CheckName(o.Name); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("a fleet needs root: it mounts disks, makes network namespaces and boots hosts")
	}
	if err := hosts.Preflight(); err != nil {
		return err
	}
	for _, v := range append([]string{o.Kubernetes}, o.AlsoKubernetes...) {
		parsed, err := exactVersion("Kubernetes", v)
		if err != nil {
			return err
		}
		if parsed.Minor() < firstMinor {
			return fmt.Errorf("the fleet runs Kubernetes v1.%d and later, not %s", firstMinor, v)
		}
	}
	for _, v := range append([]string{o.Containerd}, o.AlsoContainerd...) {
		if _, err := exactVersion("containerd", v); err != nil {
			return err
		}
	}
	return nil
}

func exactVersion(of, v string) (*semver.Version, error) {
	parsed, err := semver.StrictNewVersion(strings.TrimPrefix(v, "v"))
	if err != nil || !strings.HasPrefix(v, "v") {
		return nil, fmt.Errorf("%s version %q: give an exact version like v1.37.2", of, v)
	}
	return parsed, nil
}

// record reads the fleet's record or makes one; an existing fleet keeps the versions its hosts started with.
func (o Options) record() (record *state.Fleet, fresh bool, err error) {
	record, err = state.Load(o.Name)
	if errors.Is(err, state.ErrUnknown) {
		record, fresh = &state.Fleet{Name: o.Name, Kubernetes: o.Kubernetes, Containerd: o.Containerd, CoreDNS: o.CoreDNS, NoCluster: o.NoCluster}, true
	} else if err != nil {
		return nil, false, err
	}
	if record.Kubernetes != o.Kubernetes || record.Containerd != o.Containerd {
		return nil, false, fmt.Errorf("fleet %s started with Kubernetes %s and containerd %s, not %s and %s: take it down first, or add versions with --also-kubernetes and --also-containerd",
			o.Name, record.Kubernetes, record.Containerd, o.Kubernetes, o.Containerd)
	}
	if o.CoreDNS && !record.CoreDNS {
		return nil, false, fmt.Errorf("fleet %s started without CoreDNS: take it down first", o.Name)
	}
	if o.NoCluster != record.NoCluster {
		return nil, false, fmt.Errorf("fleet %s started with a cluster or without, and is asked for the other: take it down first", o.Name)
	}
	record.AlsoKubernetes = union(record.AlsoKubernetes, o.AlsoKubernetes)
	record.AlsoContainerd = union(record.AlsoContainerd, o.AlsoContainerd)
	return record, fresh, record.AddHosts(o.ControlPlanes, o.Workers)
}

func union(a, b []string) []string {
	for _, v := range b {
		if !slices.Contains(a, v) {
			a = append(a, v)
		}
	}
	return a
}

// bringUp carries what the steps of Up hand to each other.
type bringUp struct {
	fleet *Fleet
	fresh bool
	set   *artefacts.Set
	say   *progress

	changed atomic.Bool // something had to be done
}

func (u *bringUp) summary(o Options) {
	verb := "was up already"
	if u.changed.Load() {
		verb = "is up"
	}
	u.say.say("fleet %s %s: %d hosts, API %s", o.Name, verb, len(u.record().Hosts), u.fleet.APIEndpoint())
	if len(u.record().Hosts) > o.ControlPlanes+o.Workers {
		u.say.say("fleet %s has more hosts than asked for; hosts are only ever removed together, by fleet down", o.Name)
	}
}

func (u *bringUp) record() *state.Fleet { return u.fleet.record }

// collect gets everything the fleet is made of into the cache.
func (u *bringUp) collect(ctx context.Context) error {
	r := u.record()
	config := artefacts.Config{
		Kubernetes: union([]string{r.Kubernetes}, r.AlsoKubernetes), Containerd: union([]string{r.Containerd}, r.AlsoContainerd),
		CoreDNS: r.CoreDNS, Mirror: os.Getenv("REFIT_FLEET_MIRROR"), Progress: u.say.artefact,
	}
	var err error
	if u.set, err = ensureArtefacts(ctx, config, u.say); err != nil {
		return err
	}
	r.Kubectl = u.set.KubernetesBin(r.Kubernetes, "kubectl")
	r.AptDir, r.Images = u.set.AptDir(), nil
	for _, im := range u.set.Images() {
		r.Images = append(r.Images, state.Image{Ref: im.Ref, Tar: im.Tar})
		if r.PauseImage == "" && strings.Contains(im.Ref, "/pause:") && (im.Kubernetes == "" || im.Kubernetes == r.Kubernetes) {
			r.PauseImage = im.Ref
		}
	}
	if r.PauseImage == "" {
		return fmt.Errorf("no pause image among the artefacts of Kubernetes %s", r.Kubernetes)
	}
	r.BlobDir = u.set.CacheDir() + "/blobs"
	return nil
}

func (u *bringUp) claim(ctx context.Context) error {
	if err := u.record().Claim(ctx, u.fresh); err != nil {
		return err
	}
	site := u.record().Site()
	u.say.say("network %s, state %s", site.Subnet(), site.Dir)
	return site.RoutePods(ctx, u.record().Machines())
}

func (u *bringUp) serve(ctx context.Context) error {
	program, err := u.fleet.programPath(ctx)
	if err != nil {
		return err
	}
	if err := daemon.Ensure(ctx, program, u.fleet.Name()); err != nil {
		return err
	}
	u.say.say("mirror, registry and API endpoint are served (pid %d)", daemon.Pid(u.fleet.Name()))
	return nil
}

// layer makes the disk below all hosts. Once hosts stand on it, it stays: a disk whose lower layers change is undefined.
func (u *bringUp) layer(ctx context.Context) error {
	r := u.record()
	if len(r.Layers) > 0 {
		return nil
	}
	program, err := u.fleet.programPath(ctx)
	if err != nil {
		return err
	}
	l, err := cluster.Packages{
		Kubernetes: r.Kubernetes, Containerd: r.Containerd, AptDir: r.AptDir, Keyring: u.set.Keyring(), Base: u.set.RootFS(),
		CacheDir: u.set.CacheDir(),
	}.Layer(r.Site(), program)
	if err != nil {
		return err
	}
	if err := l.Build(ctx); err != nil {
		return fmt.Errorf("installing packages: %w", err)
	}
	u.say.say("disk layer with Kubernetes %s and containerd %s is ready", r.Kubernetes, r.Containerd)
	r.Layers = []string{l.Dir, u.set.RootFS()}
	return r.Save()
}

func (u *bringUp) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	machines := u.record().Machines()
	for _, m := range machines {
		g.Go(func() error { return u.bootOne(ctx, m, machines) })
	}
	return g.Wait()
}

func (u *bringUp) bootOne(ctx context.Context, m hosts.Host, peers []hosts.Host) error {
	if m.Running() {
		return errors.Join(m.RouteTo(ctx, peers), m.AwaitBoot(ctx))
	}
	u.changed.Store(true)
	if err := cluster.Prepare(ctx, m, u.record().PauseImage); err != nil {
		return err
	}
	program, err := u.fleet.programPath(ctx)
	if err != nil {
		return err
	}
	if err := m.Start(ctx, program, u.fleet.Name()); err != nil {
		return err
	}
	u.say.host(m.Name, "booted at "+m.Address().String())
	return nil
}

func (u *bringUp) cluster(ctx context.Context) error {
	c := &cluster.Cluster{Fleet: u.record(), Progress: func(host, what string) {
		u.changed.Store(true)
		u.say.host(host, what)
	}}
	if err := c.Up(ctx); err != nil {
		return err
	}
	u.say.say("all nodes are Ready")
	return nil
}

func (u *bringUp) kubeconfig(context.Context) error {
	c := &cluster.Cluster{Fleet: u.record()}
	data, err := c.AdminConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(u.fleet.Kubeconfig(), data, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}
