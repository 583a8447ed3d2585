package testfleet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/test/fleet/cluster"
	"github.com/refit-dev/refit/test/fleet/hosts"
	"github.com/refit-dev/refit/test/fleet/state"
)

// Options says what fleet to bring up.
type Options struct {
	Name                   string
	ControlPlanes, Workers int
	// Kubernetes and Containerd are what the hosts start with, like v1.36.3 and v1.7.27.
	Kubernetes, Containerd string
	// AlsoKubernetes and AlsoContainerd are offered by mirror and registry as well, to upgrade to.
	AlsoKubernetes, AlsoContainerd []string
	// CoreDNS gives the cluster its name server, as kubeadm does by itself. Each of its releases takes minutes to build once.
	// Without it, kubeadm upgrade wants CoreDNSUnsupportedPlugins and CoreDNSMigration ignored.
	CoreDNS bool
	// NoCluster leaves the hosts without one: they boot in seconds and have the packages and a running containerd.
	NoCluster bool
	// Progress receives one line per thing done. Nil: silence.
	Progress io.Writer
}

// Fleet is a fleet on this machine.
type Fleet struct {
	record  *state.Fleet
	program string
}

// Open finds a fleet that was brought up before, by any process.
func Open(name string) (*Fleet, error) {
	record, err := state.Load(name)
	if err != nil {
		return nil, err
	}
	return &Fleet{record: record}, nil
}

// Name is the fleet's name.
func (f *Fleet) Name() string { return f.record.Name }

// Hosts lists the fleet's hosts, control planes first.
func (f *Fleet) Hosts() []*Host {
	all := make([]*Host, 0, len(f.record.Hosts))
	for _, controlPlane := range []bool{true, false} {
		for _, h := range f.record.Hosts {
			if h.ControlPlane == controlPlane {
				all = append(all, f.host(h))
			}
		}
	}
	return all
}

// Host finds a host by name; nil if there is none.
func (f *Fleet) Host(name string) *Host {
	h := f.record.Host(name)
	if h == nil {
		return nil
	}
	return f.host(*h)
}

func (f *Fleet) host(h state.Host) *Host {
	return &Host{fleet: f, machine: f.record.Machine(h), controlPlane: h.ControlPlane}
}

// Kubeconfig is the path of the cluster administrator's kubeconfig.
func (f *Fleet) Kubeconfig() string { return filepath.Join(state.Dir(f.record.Name), "kubeconfig") }

// APIEndpoint is the URL of the cluster's API.
func (f *Fleet) APIEndpoint() string { return "https://" + cluster.Endpoint(f.record.Site()) }

// MirrorURL is where this machine reaches the apt mirror; hosts say http://mirror.fleet.test.
func (f *Fleet) MirrorURL() string { return "http://" + f.record.Site().Gateway().String() }

// RegistryURL is where this machine reaches the image registry; hosts say registry.fleet.test.
func (f *Fleet) RegistryURL() string { return "http://" + f.record.Site().Gateway().String() }

// Versions are what the fleet was brought up with.
func (f *Fleet) Versions() (kubernetes, containerd string) {
	return f.record.Kubernetes, f.record.Containerd
}

// Host is one machine of a fleet.
type Host struct {
	fleet        *Fleet
	machine      hosts.Host
	controlPlane bool
}

// Name is the host's name, and its Node's.
func (h *Host) Name() string { return h.machine.Name }

// Address is the host's IP address.
func (h *Host) Address() string { return h.machine.Address().String() }

// ControlPlane says whether the host is part of the control plane.
func (h *Host) ControlPlane() bool { return h.controlPlane }

// Running says whether the host is on.
func (h *Host) Running() bool { return h.machine.Running() }

// Leader is the pid of the host's systemd on this machine, 0 if the host is off.
func (h *Host) Leader() int { return h.machine.Leader() }

// RootDir is the host's file system on this machine, readable and writable also while the host is off.
func (h *Host) RootDir() string { return h.machine.RootDir() }

// Exec runs argv as root inside the host and returns its stdout; the error has stderr and exit code (hosts.ExecError).
func (h *Host) Exec(ctx context.Context, stdin io.Reader, argv ...string) ([]byte, error) {
	return h.machine.Exec(ctx, stdin, argv...)
}

// Run runs argv as root inside the host with the given streams.
func (h *Host) Run(ctx context.Context, s hosts.Streams, argv ...string) error {
	return h.machine.Run(ctx, s, argv...)
}

// CopyIn copies a file of this machine onto the host.
func (h *Host) CopyIn(ctx context.Context, src, dst string, mode os.FileMode) error {
	return h.machine.CopyIn(ctx, src, dst, mode)
}

// BootID is the id of the host's current boot.
func (h *Host) BootID(ctx context.Context) (string, error) { return h.machine.BootID(ctx) }

// Kill is the host's sudden death: silence on the network, every process gone, the disk as it was.
func (h *Host) Kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	return h.machine.Kill(ctx)
}

// Start boots a host that is off and waits for the end of its boot, not for its Node to be Ready.
func (h *Host) Start(ctx context.Context) error {
	program, err := h.fleet.programPath(ctx)
	if err != nil {
		return err
	}
	return h.machine.Start(ctx, program, h.fleet.record.Name)
}

// Reboot reboots the host through its own systemd and waits until it is up again.
func (h *Host) Reboot(ctx context.Context) error { return h.machine.Reboot(ctx) }

// Monitor is the body of the fleet program's hidden monitor command.
func Monitor(ctx context.Context, fleet, host string) error {
	f, err := Open(fleet)
	if err != nil {
		return err
	}
	h := f.Host(host)
	if h == nil {
		return fmt.Errorf("fleet %s has no host %s", fleet, host)
	}
	return h.machine.Monitor(ctx, func() ([]hosts.Host, error) {
		now, err := state.Load(fleet) // hosts may have been added since the last boot
		if err != nil {
			return nil, err
		}
		return now.Machines(), nil
	})
}
