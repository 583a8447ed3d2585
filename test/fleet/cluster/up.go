package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refit-dev/refit/test/fleet/hosts"
	"github.com/refit-dev/refit/test/fleet/state"
)

const (
	// readyTimeout covers a control plane that comes back as a whole on few cores.
	readyTimeout = 8 * time.Minute

	kubeadmConfig = "/etc/kubernetes/kubeadm.yaml"
	adminConfig   = "/etc/kubernetes/admin.conf"
)

// sharedPKI is what every control plane has in common; kubeadm makes the rest from it.
var sharedPKI = []string{
	"ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt", "etcd/ca.key",
}

// Cluster is the Kubernetes cluster of a fleet.
type Cluster struct {
	Fleet *state.Fleet
	// Progress is told what was done on a host.
	Progress func(host, what string)

	// saving: hosts join side by side and are recorded in one file.
	saving sync.Mutex
}

// Up makes every recorded host a Ready node: what has joined is left alone, what has not is joined.
func (c *Cluster) Up(ctx context.Context) error {
	if err := c.initialise(ctx); err != nil {
		return err
	}
	if err := c.joinAll(ctx); err != nil {
		return err
	}
	return c.awaitReady(ctx)
}

func (c *Cluster) initialise(ctx context.Context) error {
	first := c.Fleet.Host("cp-1")
	if first.Joined {
		return nil
	}
	h := c.Fleet.Machine(*first)
	if err := c.reset(ctx, h); err != nil {
		return err
	}
	values := valuesFor(h, c.Fleet.Name, c.Fleet.Kubernetes)
	values.SkipCoreDNS = !c.Fleet.CoreDNS
	config, err := render(initTemplate, values)
	if err != nil {
		return err
	}
	if err := h.WriteFile(kubeadmConfig, config, 0o600); err != nil {
		return err
	}
	if err := runKubeadm(ctx, h, "init", "--config", kubeadmConfig); err != nil {
		return fmt.Errorf("initialising the cluster: %w", err)
	}
	return c.joined(h, "initialised the cluster")
}

// joinAll joins workers side by side; control planes one after another, since each is a change of etcd's membership.
func (c *Cluster) joinAll(ctx context.Context) error {
	var missing []state.Host
	for _, h := range c.Fleet.Hosts {
		if !h.Joined {
			missing = append(missing, h)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := c.kubectl(ctx, "get", "nodes"); err != nil {
		return fmt.Errorf("waiting for the API before hosts join: %w", err)
	}
	ticket, err := c.newTicket(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for _, h := range missing {
			if h.ControlPlane {
				if err := c.join(ctx, h, ticket); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, h := range missing {
		if !h.ControlPlane {
			g.Go(func() error { return c.join(ctx, h, ticket) })
		}
	}
	return g.Wait()
}

// ticket is what lets a host join.
type ticket struct {
	token, caHash string
	pki           map[string][]byte
}

func (c *Cluster) newTicket(ctx context.Context) (ticket, error) {
	source, err := c.controlPlane()
	if err != nil {
		return ticket{}, err
	}
	t := ticket{pki: map[string][]byte{}}
	for _, name := range sharedPKI {
		data, err := os.ReadFile(filepath.Join(source.RootDir(), "etc/kubernetes/pki", name))
		if err != nil {
			return ticket{}, fmt.Errorf("reading the cluster's keys: %w", err)
		}
		t.pki[name] = data
	}
	if t.caHash, err = publicKeyHash(t.pki["ca.crt"]); err != nil {
		return ticket{}, err
	}
	secret := make([]byte, 11)
	if _, err := rand.Read(secret); err != nil {
		return ticket{}, fmt.Errorf("making a join token: %w", err)
	}
	text := hex.EncodeToString(secret)
	t.token = text[:6] + "." + text[6:]
	if _, err := source.Exec(ctx, nil, "kubeadm", "token", "create", t.token, "--ttl", "2h"); err != nil {
		return ticket{}, fmt.Errorf("making a join token: %w", err)
	}
	return t, nil
}

// publicKeyHash is the pin of a CA that kubeadm expects.
func publicKeyHash(certificate []byte) (string, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return "", errors.New("reading the cluster's CA: not a PEM certificate")
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("reading the cluster's CA: %w", err)
	}
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func (c *Cluster) join(ctx context.Context, host state.Host, t ticket) error {
	h := c.Fleet.Machine(host)
	if err := c.reset(ctx, h); err != nil {
		return err
	}
	values := valuesFor(h, c.Fleet.Name, c.Fleet.Kubernetes)
	values.ControlPlane, values.Token, values.CAHash = host.ControlPlane, t.token, t.caHash
	config, err := render(joinTemplate, values)
	if err != nil {
		return err
	}
	if err := h.WriteFile(kubeadmConfig, config, 0o600); err != nil {
		return err
	}
	if host.ControlPlane {
		for name, data := range t.pki {
			if err := h.WriteFile("/etc/kubernetes/pki/"+name, data, 0o600); err != nil {
				return err
			}
		}
	}
	if err := runKubeadm(ctx, h, "join", "--config", kubeadmConfig); err != nil {
		return fmt.Errorf("joining %s: %w", h.Name, err)
	}
	return c.joined(h, "joined the cluster")
}

// reset takes back what an interrupted init or join left on the host, if any.
func (c *Cluster) reset(ctx context.Context, h hosts.Host) error {
	if _, err := os.Stat(filepath.Join(h.RootDir(), kubeadmConfig)); err != nil {
		return nil //nolint:nilerr // kubeadm never ran here
	}
	c.Progress(h.Name, "takes back an interrupted kubeadm run")
	// The run may still be going on, without the fleet program that started it.
	_, _ = h.Exec(ctx, nil, "systemctl", "stop", kubeadmUnit) // not loaded: it ended
	if err := runKubeadm(ctx, h, "reset", "--force", "--cri-socket", criSocket); err != nil {
		return fmt.Errorf("taking back an interrupted kubeadm run on %s: %w", h.Name, err)
	}
	if _, err := c.controlPlane(); err != nil {
		return nil //nolint:nilerr // no cluster yet, so no Node either
	}
	if err := c.kubectl(ctx, "delete", "node", h.Name, "--ignore-not-found"); err != nil {
		return fmt.Errorf("removing the half-joined node %s: %w", h.Name, err)
	}
	return nil
}

// kubeadmUnit is the unit kubeadm runs as: found again, and stopped, by a later fleet program.
const kubeadmUnit = "fleet-kubeadm.service"

func runKubeadm(ctx context.Context, h hosts.Host, args ...string) error {
	argv := append([]string{"systemd-run", "--quiet", "--collect", "--pipe", "--wait", "--unit=" + kubeadmUnit, "kubeadm"}, args...)
	_, err := h.Exec(ctx, nil, argv...)
	return err
}

// joined records that kubeadm succeeded; a crash before it means that the host is reset and joined again.
func (c *Cluster) joined(h hosts.Host, what string) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	c.Fleet.Host(h.Name).Joined = true
	if err := c.Fleet.Save(); err != nil {
		return err
	}
	c.Progress(h.Name, what)
	return nil
}

// controlPlane is a running member of the control plane.
func (c *Cluster) controlPlane() (hosts.Host, error) {
	for _, h := range c.Fleet.Hosts {
		if m := c.Fleet.Machine(h); h.ControlPlane && h.Joined && m.Running() {
			return m, nil
		}
	}
	return hosts.Host{}, errors.New("no control-plane host of the fleet is running")
}

func (c *Cluster) awaitReady(ctx context.Context) error {
	args := []string{"wait", "--for=condition=Ready", "--timeout=1m"}
	for _, h := range c.Fleet.Hosts {
		args = append(args, "node/"+h.Name)
	}
	if err := c.kubectl(ctx, args...); err != nil {
		return fmt.Errorf("waiting for the nodes to be Ready: %w", err)
	}
	return nil
}

// kubectl asks again after every failure: an API server that has just started refuses even its administrator.
func (c *Cluster) kubectl(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	cp, err := c.controlPlane()
	if err != nil {
		return err
	}
	argv := append([]string{"kubectl", "--kubeconfig", adminConfig}, args...)
	for {
		_, err := cp.Exec(ctx, nil, argv...)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// AdminConfig reads the cluster administrator's kubeconfig.
func (c *Cluster) AdminConfig() ([]byte, error) {
	for _, h := range c.Fleet.Hosts {
		if data, err := os.ReadFile(filepath.Join(c.Fleet.Machine(h).RootDir(), adminConfig)); err == nil {
			return data, nil
		}
	}
	return nil, errors.New("no host of the fleet has the administrator's kubeconfig: bring it up with fleet up")
}
