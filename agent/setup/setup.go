// Package setup puts an agent together from its configuration.
package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/agent/watch"
)

// Paths of a host. The zero value of a field stands for its usual place.
type Paths struct {
	State     string // /var/lib/refit
	Run       string // /run/refit
	Etc       string // /etc/refit
	MachineID string // /etc/machine-id
	Root      string // /
	BootID    string // /proc/sys/kernel/random/boot_id
}

// PathsUnder are the usual places below a directory that is the host's root.
func PathsUnder(root string) Paths {
	p := Paths{Root: root}.withDefaults()
	for _, path := range []*string{&p.State, &p.Run, &p.Etc, &p.MachineID} {
		*path = filepath.Join(root, *path)
	}
	return p
}

func (p Paths) withDefaults() Paths {
	set := func(path *string, value string) {
		if *path == "" {
			*path = value
		}
	}
	set(&p.State, store.DefaultDir)
	set(&p.Run, "/run/refit")
	set(&p.Etc, filepath.Dir(agent.DefaultConfigFile))
	set(&p.MachineID, "/etc/machine-id")
	set(&p.Root, "/")
	set(&p.BootID, "/proc/sys/kernel/random/boot_id")
	return p
}

// joinRetry is how often an agent looks for the kubeconfig of a host that has not joined a cluster yet.
const joinRetry = 30 * time.Second

// Run puts an agent together and works until the context ends.
func Run(ctx context.Context, config agent.Config, paths Paths) error {
	paths = paths.withDefaults()
	release, err := alone(ctx, paths)
	if err != nil {
		return err
	}
	defer release()
	client, err := awaitClient(ctx, config)
	if err != nil || client == nil {
		return err
	}
	units := systemd.New()
	defer units.Close()
	state := store.New(paths.State)
	if err := state.MakeDirs(); err != nil {
		return err
	}
	files, err := fileEvents(ctx, state, paths)
	if err != nil {
		return err
	}
	program, err := ExecutorPath(config)
	if err != nil {
		return err
	}
	deps := agent.Deps{
		API: client, Store: state, Files: files, UnitEvents: systemd.Changes(ctx, agent.Units...),
		Executor: &launch.Executor{Units: units, Program: program, RunDir: paths.Run},
		Hold:     agent.HoldFile(filepath.Join(paths.Etc, "hold")), PackageLock: agent.PackageLock(paths.Root),
		LockReleased: agent.LockReleased(paths.Root),
	}
	if deps.MachineID, err = readID(paths.MachineID); err != nil {
		return err
	}
	if deps.BootID, err = readID(paths.BootID); err != nil {
		return err
	}
	return runBoth(ctx, agent.New(deps), client)
}

// fileEvents watches the directories of the host. That of the hold file is made when it
// is missing: a directory that comes later is not watched, and the owner's veto comes without warning.
func fileEvents(ctx context.Context, state *store.Store, paths Paths) (<-chan string, error) {
	if err := os.MkdirAll(paths.Etc, 0o755); err != nil {
		logr.FromContextOrDiscard(ctx).Info("Cannot make the directory of the hold file, a new hold is seen late", "reason", err.Error())
	}
	return agent.FileEvents(ctx, append([]string{state.JournalDir(), paths.Etc}, agent.HostDirs(paths.Root)...)...)
}

func runBoth(ctx context.Context, a *agent.Agent, client *watch.Client) error {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { (&watch.Watcher{Client: client, Busy: a.Busy}).Run(ctx, a.Events()) })
	err := a.Run(ctx)
	stop()
	watching.Wait()
	return err
}

// awaitClient waits for the host to join its cluster; nil without an error says that the context ended before.
func awaitClient(ctx context.Context, config agent.Config) (*watch.Client, error) {
	log := logr.FromContextOrDiscard(ctx)
	for said := false; ; said = true {
		rest, err := watch.LoadConfig(config.Kubeconfig)
		if err == nil {
			return newClient(ctx, rest, config)
		}
		if !errors.Is(err, watch.ErrNoKubeconfig) {
			return nil, err
		}
		if !said {
			log.Info("Waiting for the host to join its cluster", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(joinRetry):
		}
	}
}

func newClient(ctx context.Context, rest *rest.Config, config agent.Config) (*watch.Client, error) {
	name := config.Machine
	if name == "" {
		var err error
		if name, err = watch.NodeName(rest); err != nil {
			return nil, err
		}
	}
	logr.FromContextOrDiscard(ctx).Info("Starting", "machine", name, "namespace", config.Namespace, "server", rest.Host)
	return watch.NewClient(rest, config.Namespace, name)
}

// ExecutorPath is where refit-executor is: as configured, else beside this program.
func ExecutorPath(config agent.Config) (string, error) {
	path := config.Executor
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("finding refit-executor: %w", err)
		}
		path = filepath.Join(filepath.Dir(self), "refit-executor")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("finding refit-executor: %w: install it beside refit-agent, or set executor in the agent's configuration", err)
	}
	return path, nil
}

func readID(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the identity of this host: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
