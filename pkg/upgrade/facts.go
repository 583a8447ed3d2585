package upgrade

import (
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// FieldRecord is the field of a Problem that keeps the host's own record from counting.
const FieldRecord = "record"

// FactsAPIVersion is the version of the facts format; fields are only added within it.
const FactsAPIVersion = "facts.refit.dev/v1"

// Facts is what a host says of itself: what runs, not what was wished, and not
// merely what is on disk. `refit-agent facts` prints it. A probe that failed leaves
// its field empty and says so in Problems; nothing is ever filled in by default.
type Facts struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"` // Facts

	Host      HostFacts       `json:"host"`
	OS        OSFacts         `json:"os"`
	Kubelet   *ComponentFacts `json:"kubelet,omitempty"`
	Kubeadm   *ComponentFacts `json:"kubeadm,omitempty"`
	Runtime   *RuntimeFacts   `json:"containerRuntime,omitempty"`
	Control   *ControlFacts   `json:"controlPlane,omitempty"`
	Etcd      *EtcdFacts      `json:"etcd,omitempty"`
	EtcdUnit  *EtcdUnitFacts  `json:"etcdUnit,omitempty"`
	KubeProxy string          `json:"kubeProxy,omitempty"`
	Node      *NodeFacts      `json:"node,omitempty"`
	Packages  PackageFacts    `json:"packages"`
	Reboot    RebootFacts     `json:"reboot"`
	// StaticPods are the manifests that the kubelet reads, each file of its directory.
	StaticPods []StaticPodFacts `json:"staticPods,omitempty"`
	Mounts     []MountFacts     `json:"mounts,omitempty"`
	Certs      []CertFacts      `json:"certificates,omitempty"`
	Conflicts  []ConflictFacts  `json:"conflictingManagers,omitempty"`
	// ManagedFiles are the files that Refit keeps on the host, those that are there.
	ManagedFiles []ManagedFileFacts `json:"managedFiles,omitempty"`
	Hold         *HoldFacts         `json:"hold,omitempty"`
	// Policy of the host's owner; nil where he has written none.
	Policy *PolicyFacts `json:"policy,omitempty"`
	// Record lists the sets of versions that this host ran under Refit, by its own journals:
	// only they may be gone back to. `refit-agent facts` gives it.
	Record   []v1alpha1.Versions `json:"record,omitempty"`
	Problems []Problem           `json:"problems,omitempty"`
}

// Problem is a probe that failed: the field it would have filled, and why.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// HostFacts identifies the machine.
type HostFacts struct {
	Hostname   string `json:"hostname,omitempty"`
	MachineID  string `json:"machineID,omitempty"`
	BootID     string `json:"bootID,omitempty"`
	SystemUUID string `json:"systemUUID,omitempty"`
}

// OSFacts is os-release and the kernel.
type OSFacts struct {
	ID           string   `json:"id,omitempty"`
	IDLike       []string `json:"idLike,omitempty"`
	VersionID    string   `json:"versionID,omitempty"`
	PrettyName   string   `json:"prettyName,omitempty"`
	Family       string   `json:"family,omitempty"` // apt | dnf | zypper | "" (unsupported)
	Kernel       string   `json:"kernel,omitempty"`
	Architecture string   `json:"architecture,omitempty"` // Go's spelling
	// CgroupVersion is 2 for the unified hierarchy and 1 for anything else, hybrid ones too.
	CgroupVersion int `json:"cgroupVersion,omitempty"`
}

// ComponentFacts is a program that runs as a unit, or a tool on disk.
type ComponentFacts struct {
	Running   string     `json:"running,omitempty"`   // version of the running process; "" when it does not run
	Installed string     `json:"installed,omitempty"` // version of the program on disk
	Unit      string     `json:"unit,omitempty"`
	Active    bool       `json:"active,omitempty"`
	MainPID   uint32     `json:"mainPID,omitempty"`
	StartTime *time.Time `json:"startTime,omitempty"`
	// Flags are the command-line flags of the running process, without secrets.
	Flags []string `json:"flags,omitempty"`
	// FlagSources are files that set flags: path to content lines that hold flags.
	FlagSources map[string]string `json:"flagSources,omitempty"`
	// Configuration is what the kubelet's files make of its configuration: its own file, and
	// the drop-in files of the directory that its process was told to read.
	Configuration map[string]any `json:"configuration,omitempty"`
	// DropIns are the drop-in files of the kubelet's configuration, in the order in which they are read.
	DropIns []KubeletDropInFacts `json:"dropIns,omitempty"`
	// ConfigArgs is where the kubelet's unit has --config from; nil where it does not use KUBELET_CONFIG_ARGS.
	ConfigArgs *ConfigArgsFacts `json:"configArgs,omitempty"`
	// State are the files in which the kubelet keeps what it reads again when it starts.
	State []KubeletStateFacts `json:"state,omitempty"`
}

// KubeletDropInFacts is one drop-in file of the kubelet's configuration.
type KubeletDropInFacts struct {
	Path          string         `json:"path"`
	Configuration map[string]any `json:"configuration,omitempty"`
	// Broken says why the file cannot be read as what it should be.
	Broken string `json:"broken,omitempty"`
}

// ConfigArgsFacts is the variable KUBELET_CONFIG_ARGS of the kubelet's unit, without what Refit's drop-in adds.
type ConfigArgsFacts struct {
	Value string `json:"value,omitempty"`
	// EnvironmentFile that sets it; no drop-in of a unit has a say over such a file.
	EnvironmentFile string `json:"environmentFile,omitempty"`
}

// ManagedFileFacts is one file that Refit keeps on the host.
type ManagedFileFacts struct {
	Path    string    `json:"path"`
	SHA256  string    `json:"sha256"`
	Mode    uint32    `json:"mode"`
	ModTime time.Time `json:"modTime"`
}

// KubeletStateFacts is one state file of the kubelet.
type KubeletStateFacts struct {
	Path string `json:"path"`
	// Policy that the file was written under; "" where it names none.
	Policy string `json:"policy,omitempty"`
	// Broken says why the file cannot be read as what it should be.
	Broken string `json:"broken,omitempty"`
}

// RestartPending says that the program on disk is not the one that runs.
func (c *ComponentFacts) RestartPending() bool {
	return c != nil && c.Running != "" && c.Installed != "" && c.Running != c.Installed
}

// RuntimeFacts is the container runtime that answers on its socket.
type RuntimeFacts struct {
	Name      string `json:"name,omitempty"`    // containerd | cri-o
	Running   string `json:"running,omitempty"` // as the daemon answers
	Installed string `json:"installed,omitempty"`
	Unit      string `json:"unit,omitempty"`
	// Stopped says that its unit is there and has no process. Without an answer and
	// without that, what runs is unknown.
	Stopped  bool   `json:"stopped,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
	// CgroupDriver is systemd or cgroupfs, as effective.
	CgroupDriver string `json:"cgroupDriver,omitempty"`
	SandboxImage string `json:"sandboxImage,omitempty"`
	Sandboxes    int    `json:"sandboxes,omitempty"`
	// Configuration of containerd, as far as another version of it may read it otherwise.
	Configuration *RuntimeConfigFacts `json:"configuration,omitempty"`
}

// RuntimeConfigFacts is what containerd is configured with.
type RuntimeConfigFacts struct {
	Path string `json:"path"`
	// Version that the file names; 0 when it names none, or when there is no file.
	Version int `json:"version,omitempty"`
	// Settings in effect that not every version takes, by their table and name. What may hold a secret has no value.
	Settings map[string]string `json:"settings,omitempty"`
}

// ControlFacts is this host's own control plane.
type ControlFacts struct {
	APIServer         string `json:"apiServer,omitempty"` // /version of this host's own endpoint
	ControllerManager string `json:"controllerManager,omitempty"`
	Scheduler         string `json:"scheduler,omitempty"`
	Etcd              string `json:"etcd,omitempty"`
	// Manifests are the versions in the static pod manifests on disk.
	Manifests map[string]string `json:"manifests,omitempty"`
	// FeatureGates are those that the manifests set, such as NodeSwap=true, by component.
	FeatureGates map[string][]string `json:"featureGates,omitempty"`
	// DeprecatedAPIs are those that somebody has asked this host's API server for since it started.
	DeprecatedAPIs []DeprecatedAPIFacts `json:"deprecatedAPIs,omitempty"`
	// Unfinished is the run of kubeadm that Refit began here last and that did not end well.
	Unfinished *UnfinishedFacts `json:"unfinished,omitempty"`
}

// UnfinishedFacts is a run of kubeadm upgrade that has yet to come to its end. The static
// pods may be new already: what comes after them, such as kubeadm's config maps, the
// kubelet's configuration and the addons, is not.
type UnfinishedFacts struct {
	Version string               `json:"version"`
	Role    v1alpha1.KubeadmRole `json:"role"`
}

// DeprecatedAPIFacts is an API that is still asked for although it goes away.
type DeprecatedAPIFacts struct {
	Group          string `json:"group,omitempty"`
	Version        string `json:"version"`
	Resource       string `json:"resource"`
	Subresource    string `json:"subresource,omitempty"`
	RemovedRelease string `json:"removedRelease"` // 1.32
}

// StaticPodFacts is one static pod manifest.
type StaticPodFacts struct {
	Path      string `json:"path"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// NodeFacts is the node identity of the host, from the kubelet's client certificate.
type NodeFacts struct {
	Name string `json:"name,omitempty"`
}

// PackageFacts is the state of the package database.
type PackageFacts struct {
	Manager string `json:"manager,omitempty"` // apt | dnf | zypper
	// Installed are the packages that Refit looks at: those of Kubernetes, of the runtime, and those in spec.
	Installed []InstalledPackage `json:"installed,omitempty"`
	Holds     []string           `json:"holds,omitempty"`
	Broken    []string           `json:"broken,omitempty"` // half-installed or half-configured
	Lock      *LockFacts         `json:"lock,omitempty"`   // who holds the package manager's lock now
	Sources   []SourceFacts      `json:"sources,omitempty"`
	// Indexes are what repositories offer of the packages that Refit looks at. `refit-agent facts`
	// gives them, for plans that are made elsewhere; a plan of the host itself reads them anew.
	Indexes []IndexFacts `json:"indexes,omitempty"`
}

// IndexFacts is what one repository offers of some packages: one that is in Packages
// and not in Candidates is not offered.
type IndexFacts struct {
	URI        string      `json:"uri"`
	Suites     []string    `json:"suites,omitempty"`
	Components []string    `json:"components,omitempty"`
	Packages   []string    `json:"packages"` // the names that were looked for
	Candidates []Candidate `json:"candidates,omitempty"`
}

// InstalledPackage is one installed package.
type InstalledPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   string `json:"state,omitempty"` // installed | half-configured | unpacked | …
	// ChangedBy is the command that brought this version, where the package manager's log has it.
	ChangedBy string `json:"changedBy,omitempty"`
}

// LockFacts names the holder of a lock.
type LockFacts struct {
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
	Path    string `json:"path"`
}

// String says who holds what.
func (l LockFacts) String() string { return l.holder() + " holds " + l.Path }

// Waited says what is waited for, and since when.
func (l LockFacts) Waited(since time.Time) string {
	return fmt.Sprintf("waiting for %s, which holds %s, since %s", l.holder(), l.Path, since.UTC().Format(time.RFC3339))
}

// holder is named as far as it can be: not out of another process namespace.
func (l LockFacts) holder() string {
	switch {
	case l.PID <= 0:
		return "a process that cannot be named from here"
	case l.Command == "":
		return fmt.Sprintf("process %d", l.PID)
	}
	return fmt.Sprintf("process %d (%s)", l.PID, l.Command)
}

// SourceFacts is one configured package source.
type SourceFacts struct {
	File   string   `json:"file"`
	Line   int      `json:"line,omitempty"`
	URI    string   `json:"uri"`
	Suites []string `json:"suites,omitempty"`
	// Components of the suites; none for a flat repository.
	Components []string `json:"components,omitempty"`
	SignedBy   string   `json:"signedBy,omitempty"`
	// Provides are the managed package names that this source offers, from the index already on the host.
	Provides []string `json:"provides,omitempty"`
}

// RebootFacts says whether the host wants a reboot.
type RebootFacts struct {
	Required bool     `json:"required,omitempty"`
	Packages []string `json:"packages,omitempty"`
	// Versions of Packages, as "name version", where they are known: the same package wants another
	// reboot when it is newer.
	Versions []string `json:"versions,omitempty"`
}

// MountFacts is free space.
type MountFacts struct {
	Path      string `json:"path"`
	FreeBytes uint64 `json:"freeBytes"`
	SizeBytes uint64 `json:"sizeBytes"`
}

// CertFacts is the expiry of one certificate.
type CertFacts struct {
	Path     string    `json:"path"`
	Subject  string    `json:"subject,omitempty"`
	NotAfter time.Time `json:"notAfter"`
	// ManagedBy is kubeadm for one that kubeadm certs renew renews, external for one that it would, were the key of
	// its CA on this host, kubelet for one that the kubelet renews itself; "" for anybody else's, a CA among them.
	ManagedBy string `json:"managedBy,omitempty"`
}

// Who renews a certificate.
const (
	ManagedByKubeadm  = "kubeadm"
	ManagedByExternal = "external"
	ManagedByKubelet  = "kubelet"
)

// ConflictFacts is another updater or reboot manager on the host.
type ConflictFacts struct {
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"`
}

// HoldFacts is the host owner's veto.
type HoldFacts struct {
	Path    string `json:"path"`
	Message string `json:"message,omitempty"`
}

// Candidate is one package version that a source offers, read from its signed index.
type Candidate struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Source  string `json:"source"` // URI
	Path    string `json:"path"`   // file name within the source
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
	// InstalledSize in bytes, 0 when the index does not say.
	InstalledSize int64    `json:"installedSize,omitempty"`
	Depends       []string `json:"depends,omitempty"`
	// From is the version that is installed, and Held that it is on hold; only of security updates.
	From string `json:"from,omitempty"`
	Held bool   `json:"held,omitempty"`
}
