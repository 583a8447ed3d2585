package hostfake

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Package is one package in the package database.
type Package struct {
	Version string
	State   string
	Held    bool
}

// File is one file.
type File struct {
	Content string
	Mode    fs.FileMode
}

// State is everything that outlives a process.
type State struct {
	BootID   string
	Boots    int
	Packages map[string]Package
	Sources  map[string]string
	Files    map[string]File
	// Active units, and what the processes behind them run.
	Active  map[string]bool
	Kubelet string
	// KubeletRead are Refit's drop-ins as they were when the kubelet started.
	KubeletRead map[string]string
	Runtime     string
	Manifests   map[string]string // static pod manifests: component to version
	Pods        map[string]string // running static pods: component to version
	// Containers count how often a static pod's container was started; Loaded is the certificate that it read then.
	Containers map[string]int
	Loaded     map[string]string
	// Etcd is what its members say; nil where the host has none.
	Etcd *upgrade.EtcdFacts
	// Unfinished is a run of kubeadm that did not end well.
	Unfinished *upgrade.UnfinishedFacts
	Sandboxes  int
	// SandboxRuntime is the runtime that started the sandboxes.
	SandboxRuntime string
	// Effects counts what must not happen twice: a package unpacked, a hook run, a reboot.
	Effects map[string]int
}

// Host is a fake host. Its zero value is not usable; see New.
type Host struct {
	mu sync.Mutex
	State
	*Faults
	// Kept are the packages that can be gone back to: "name version".
	Kept map[string]bool
	// Save is called with the state after each effect.
	Save func(State)
	// RebootIgnored makes the host stay up when a reboot is asked for.
	RebootIgnored bool
	// SameBootID makes the host come back with the boot id it had.
	SameBootID bool
	// Locked is how many looks at the package lock find it held by another process.
	Locked int
	// RenewedUntil is the end of the certificates that kubeadm issues.
	RenewedUntil time.Time
	// CgroupDrivers are those of the releases of the runtime; none is told for the others.
	CgroupDrivers map[string]string
	// Policy of the host's owner; nil for none.
	Policy *upgrade.PolicyFacts
	// Down are units that do not come up when started.
	Down map[string]bool
}

// New is a worker with the kubelet and containerd at given versions, and kubeadm.
func New(kubernetes, containerd string) *Host {
	h := &Host{Faults: &Faults{}, Kept: map[string]bool{}, Down: map[string]bool{}}
	h.State = State{
		BootID:   "boot-1",
		Packages: map[string]Package{},
		Sources:  map[string]string{},
		Files: map[string]File{
			"/var/lib/kubelet/config.yaml":       {"version: " + kubernetes + "\n", 0o644},
			"/var/lib/kubelet/kubeadm-flags.env": {"KUBELET_KUBEADM_ARGS=\"\"\n", 0o644},
		},
		Active:    map[string]bool{"kubelet.service": true, "containerd.service": true},
		Kubelet:   "v" + kubernetes,
		Runtime:   containerd,
		Manifests: map[string]string{}, Pods: map[string]string{}, Effects: map[string]int{},
		Containers: map[string]int{}, Loaded: map[string]string{},
	}
	for _, name := range []string{"kubelet", "kubeadm", "kubectl"} {
		h.Packages[name] = Package{Version: kubernetes + "-1.1", State: "installed", Held: true}
	}
	h.Packages["containerd"] = Package{Version: containerd + "-1", State: "installed"}
	h.startPods()
	return h
}

// NewEtcd is a host with a member of etcd of a version, as a package, and nothing of Kubernetes.
func NewEtcd(version string, members int) *Host {
	h := New("", "")
	h.State = State{
		BootID: "boot-1", Packages: map[string]Package{}, Sources: map[string]string{}, Files: map[string]File{}, Active: map[string]bool{},
		Manifests: map[string]string{}, Pods: map[string]string{}, Containers: map[string]int{}, Loaded: map[string]string{}, Effects: map[string]int{},
	}
	return h.WithEtcd(members).WithEtcdPackage(version)
}

// WithControlPlane makes the host run static pods.
func (h *Host) WithControlPlane(version string) *Host {
	for _, c := range components {
		h.Manifests[c], h.Pods[c] = version, version
	}
	return h
}

var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// WithCertificates gives the host certificates of kubeadm that end at a time, and has its pods load them.
func (h *Host) WithCertificates(end time.Time) *Host {
	for _, file := range certificates {
		h.Files[file] = File{end.UTC().Format(time.RFC3339), 0o600}
	}
	for c := range h.Pods {
		h.run(c)
	}
	return h
}

// run starts the container of a static pod.
func (h *Host) run(component string) {
	h.Pods[component] = h.Manifests[component]
	h.Containers[component]++
	delete(h.Loaded, component)
	if text := h.Files[loads[component]].Content; text != "" {
		h.Loaded[component] = text
	}
}

// Host is the fake as steps see it.
func (h *Host) Host() steps.Host {
	return steps.Host{
		Packages: packages{h}, Sources: sources{h}, Units: units{h}, Runtime: runtime{h}, Kubeadm: kubeadm{h}, Kubelet: kubelet{h},
		ControlPlane: controlPlane{h}, StaticPods: staticPods{h}, Etcd: etcd{h}, Facts: facts{h}, Files: files{h}, Backups: backups{h}, Hooks: hooks{h}, Policy: policy{h}, Boot: boot{h},
		StageDir: "/stage", BackupDir: "/backup", HoldPath: "/etc/refit/hold",
	}
}

// call is one effect between its two points.
func (h *Host) call(label string, effect func() error) error {
	if err := h.Before(label); err != nil {
		return err
	}
	h.mu.Lock()
	err := effect()
	h.saved()
	h.mu.Unlock()
	h.After(label)
	return err
}

func (h *Host) saved() {
	if h.Save != nil {
		h.Save(h.State)
	}
}

// amid is the point in the middle of an effect: what was done so far is on disk.
func (h *Host) amid(label string) {
	h.saved()
	h.mu.Unlock() // not held while a crash unwinds
	h.After("half of " + label)
	h.mu.Lock()
}

// Snapshot is a copy of the state.
func (h *Host) Snapshot() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, err := json.Marshal(h.State)
	if err != nil {
		panic(err)
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		panic(err)
	}
	return s
}

// upstream is the version of what a package carries: 1.37.2 of 1.37.2-1.1.
func upstream(version string) string {
	v, _, _ := strings.Cut(version, "-")
	return v
}

// onDisk is the version of a program on disk.
func (h *Host) onDisk(name string) string { return upstream(h.Packages[name].Version) }

// minor is 1.37 of v1.37.2.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return version
	}
	return parts[0] + "." + parts[1]
}

// startPods is what a kubelet does once it and the runtime are up.
func (h *Host) startPods() {
	if !h.Active["kubelet.service"] || !h.Active["containerd.service"] || h.Sandboxes > 0 {
		return
	}
	h.Sandboxes, h.SandboxRuntime = 3, h.State.Runtime
	for c := range h.Manifests {
		h.run(c)
	}
}

// PowerLoss is an unclean reboot: everything that runs is gone, what is on disk is started.
func (h *Host) PowerLoss() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restart()
}

func (h *Host) restart() {
	h.Boots++
	if !h.SameBootID {
		h.BootID = fmt.Sprintf("boot-%d", h.Boots+1)
	}
	h.Sandboxes, h.SandboxRuntime, h.Pods = 0, "", map[string]string{}
	for _, unit := range []string{"containerd.service", "kubelet.service"} {
		if _, packaged := h.Packages[strings.TrimSuffix(unit, ".service")]; packaged {
			h.start(unit)
		}
	}
	if _, packaged := h.Packages[etcdPackage]; packaged {
		h.start(upgrade.UnitEtcd)
	}
}

// readDropIns is what a kubelet does with Refit's drop-ins when it starts.
func (h *Host) readDropIns() {
	h.KubeletRead = nil
	for _, path := range upgrade.KubeletDropIns {
		file, ok := h.Files[path]
		if !ok {
			continue
		}
		if h.KubeletRead == nil {
			h.KubeletRead = map[string]string{}
		}
		h.KubeletRead[path] = file.Content
	}
}

// start makes a unit run what is on disk.
func (h *Host) start(unit string) {
	h.Active[unit] = !h.Down[unit]
	switch unit {
	case "kubelet.service":
		h.State.Kubelet = "v" + h.onDisk("kubelet")
		h.readDropIns()
	case "containerd.service":
		h.State.Runtime = h.onDisk("containerd")
	case upgrade.UnitEtcd:
		h.startEtcd()
	}
	h.startPods()
}
