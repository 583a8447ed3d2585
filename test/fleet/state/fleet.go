package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/refit-dev/refit/test/fleet/hosts"
)

const (
	fileName = "fleet.json"

	// Host numbers are the last part of their addresses: control planes count from 11, workers from 101.
	firstControlPlane = 11
	maxControlPlanes  = 9
	firstWorker       = 101
	maxWorkers        = 100
)

// ErrUnknown says that no fleet of that name exists.
var ErrUnknown = errors.New("no such fleet (see: fleet list)")

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$`)

// Fleet is one fleet as recorded. It says what was asked for; what runs is observed.
type Fleet struct {
	Name           string   `json:"name"`
	Index          int      `json:"index"`
	Kubernetes     string   `json:"kubernetes"`
	Containerd     string   `json:"containerd"`
	AlsoKubernetes []string `json:"alsoKubernetes,omitempty"`
	AlsoContainerd []string `json:"alsoContainerd,omitempty"`
	// CoreDNS says that the cluster has a name server.
	CoreDNS bool `json:"coreDNS,omitempty"`
	// NoCluster says that the hosts have Kubernetes' packages and a runtime, and are no nodes of anything.
	NoCluster bool `json:"noCluster,omitempty"`
	// Layers are the lower directories of every host's disk, top first.
	Layers []string `json:"layers,omitempty"`
	// AptDir, Images, PauseImage and BlobDir are what the daemon serves.
	AptDir     string  `json:"aptDir,omitempty"`
	Images     []Image `json:"images,omitempty"`
	PauseImage string  `json:"pauseImage,omitempty"`
	BlobDir    string  `json:"blobDir,omitempty"`
	// Kubectl is the path of a kubectl on this machine.
	Kubectl string `json:"kubectl,omitempty"`
	Hosts   []Host `json:"hosts"`
}

// Image is a container image that the fleet's registry offers.
type Image struct {
	Ref string `json:"ref"`
	Tar string `json:"tar"`
}

// Host is one host as recorded. Joined is written after kubeadm said so: without it, what is on the host is half a node.
type Host struct {
	Name         string `json:"name"`
	Number       int    `json:"number"`
	ControlPlane bool   `json:"controlPlane"`
	Joined       bool   `json:"joined"`
}

// Root is the directory that holds one directory per fleet.
func Root() string {
	if dir := os.Getenv("REFIT_FLEET_STATE"); dir != "" {
		return filepath.Clean(dir)
	}
	return "/var/lib/refit-fleet"
}

// Dir is the state directory of the named fleet.
func Dir(name string) string { return filepath.Join(Root(), name) }

// CheckName refuses a name that cannot be part of file names and cluster names.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("fleet name %q: use 1 to 20 lower-case letters, digits and dashes, with no dash at either end", name)
	}
	return nil
}

// Load reads the named fleet.
func Load(name string) (*Fleet, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(Dir(name), fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening fleet %s: %w", name, ErrUnknown)
	}
	if err != nil {
		return nil, fmt.Errorf("opening fleet %s: %w", name, err)
	}
	var f Fleet
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("opening fleet %s: reading %s: %w", name, filepath.Join(Dir(name), fileName), err)
	}
	return &f, nil
}

// Save writes the fleet; a crash leaves the old record or the new one.
func (f *Fleet) Save() error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("recording fleet %s: %w", f.Name, err)
	}
	if err := os.MkdirAll(Dir(f.Name), 0o755); err != nil {
		return fmt.Errorf("recording fleet %s: %w", f.Name, err)
	}
	path := filepath.Join(Dir(f.Name), fileName)
	if err := writeSynced(path+".new", append(data, '\n')); err != nil {
		return fmt.Errorf("recording fleet %s: %w", f.Name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("recording fleet %s: %w", f.Name, err)
	}
	return nil
}

func writeSynced(path string, data []byte) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return errors.Join(err, out.Sync(), out.Close())
}

// List names the fleets of this machine.
func List() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(Root(), "*", fileName))
	if err != nil {
		return nil, fmt.Errorf("listing fleets: %w", err)
	}
	names := make([]string, 0, len(found))
	for _, f := range found {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return names, nil
}

// Site is the footprint of the fleet on this machine.
func (f *Fleet) Site() hosts.Site { return hosts.Site{Index: f.Index, Dir: Dir(f.Name)} }

// Machine is the recorded host as something that can be booted.
func (f *Fleet) Machine(h Host) hosts.Host {
	return hosts.Host{Site: f.Site(), Name: h.Name, Number: h.Number, Layers: f.Layers}
}

// Machines are all recorded hosts.
func (f *Fleet) Machines() []hosts.Host {
	all := make([]hosts.Host, 0, len(f.Hosts))
	for _, h := range f.Hosts {
		all = append(all, f.Machine(h))
	}
	return all
}

// Host finds a recorded host by name, nil if there is none.
func (f *Fleet) Host(name string) *Host {
	i := slices.IndexFunc(f.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Hosts[i]
}

// AddHosts records the hosts that are missing up to the given counts. Hosts are never taken out: that is what down is for.
func (f *Fleet) AddHosts(controlPlanes, workers int) error {
	if f.NoCluster && controlPlanes > 0 {
		return fmt.Errorf("%d control planes: a fleet without a cluster has none", controlPlanes)
	}
	if (controlPlanes < 1 && !f.NoCluster) || controlPlanes > maxControlPlanes {
		return fmt.Errorf("%d control planes: a fleet has 1 to %d", controlPlanes, maxControlPlanes)
	}
	if workers < 0 || workers > maxWorkers {
		return fmt.Errorf("%d workers: a fleet has 0 to %d", workers, maxWorkers)
	}
	for i := range controlPlanes {
		f.add(Host{Name: fmt.Sprintf("cp-%d", i+1), Number: firstControlPlane + i, ControlPlane: true})
	}
	for i := range workers {
		f.add(Host{Name: fmt.Sprintf("worker-%d", i+1), Number: firstWorker + i})
	}
	return nil
}

func (f *Fleet) add(h Host) {
	if f.Host(h.Name) == nil {
		f.Hosts = append(f.Hosts, h)
	}
}
