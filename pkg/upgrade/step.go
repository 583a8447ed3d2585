package upgrade

import (
	"encoding/json"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// StepKind says what a step does: verb and noun.
type StepKind string

// The step kinds, in the order in which a plan usually has them.
const (
	StepPreflight       StepKind = "Preflight"
	StepStage           StepKind = "Stage" // done before the grant; a plan that is run has none
	StepSnapshotEtcd    StepKind = "SnapshotEtcd"
	StepGuardEtcd       StepKind = "GuardEtcd"      // the last look before the host is disturbed
	StepMoveEtcdLeader  StepKind = "MoveEtcdLeader" // to another member, if the one on this host leads
	StepUnholdPackages  StepKind = "UnholdPackages"
	StepSwitchSource    StepKind = "SwitchSource"
	StepInstallPackages StepKind = "InstallPackages"
	StepHoldPackages    StepKind = "HoldPackages"
	StepWriteConfig     StepKind = "WriteConfig"
	StepKubeadmUpgrade  StepKind = "KubeadmUpgrade"
	StepReloadUnits     StepKind = "ReloadUnits"
	StepStopSandboxes   StepKind = "StopSandboxes"
	StepRestartUnit     StepKind = "RestartUnit"
	StepRunHook         StepKind = "RunHook"
	StepReboot          StepKind = "Reboot"
	StepVerify          StepKind = "Verify"

	StepKubeadmRenewCertificates StepKind = "KubeadmRenewCertificates" // comes with StepRestartStaticPod
	StepRestartStaticPod         StepKind = "RestartStaticPod"
	StepRestoreCertificates      StepKind = "RestoreCertificates" // undoes a renewal; no plan has it
)

// Step is one unit of work, as data: serialisable, printable, comparable. Only the
// parameters of its kind are set. Every step is safe to repeat.
type Step struct {
	Kind StepKind `json:"kind"`

	Unit     string          `json:"unit,omitempty"`     // RestartUnit; StopSandboxes: stopped first, since it would start pods again
	Packages []PackageChange `json:"packages,omitempty"` // InstallPackages; names only for Hold and Unhold
	Source   *SourceChange   `json:"source,omitempty"`   // SwitchSource
	File     *FileChange     `json:"file,omitempty"`     // WriteConfig
	Kubeadm  *KubeadmUpgrade `json:"kubeadm,omitempty"`  // KubeadmUpgrade; Stage: the upgrade whose images are to be there
	Images   []string        `json:"images,omitempty"`   // Stage
	Renewal  *Renewal        `json:"renewal,omitempty"`  // KubeadmRenewCertificates
	Pod      string          `json:"pod,omitempty"`      // RestartStaticPod: the component, such as etcd
	Hook     string          `json:"hook,omitempty"`     // RunHook
	Reason   string          `json:"reason,omitempty"`   // Reboot
	Accept   []string        `json:"accept,omitempty"`   // GuardEtcd: findings that spec lets pass
	Down     bool            `json:"down,omitempty"`     // RestartUnit: it did not run before and nothing here mends it, so it is tried and not insisted on
	// MayBeGone is of a rollback's StopSandboxes: the runtime that was to come may never have come up.
	MayBeGone bool         `json:"mayBeGone,omitempty"`
	Expect    *Expectation `json:"expect,omitempty"` // Preflight, Verify

	// Irreversible says why a step has no inverse, for steps that cannot be undone.
	Irreversible string `json:"irreversible,omitempty"`
}

// PackageChange moves one package from one exact version to another.
type PackageChange struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"` // "" = not installed
	To   string `json:"to,omitempty"`   // "" = absent
	// Path in the stage directory, relative, and digest of the file to install; checked again right before use.
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// URI the file was found at.
	URI string `json:"uri,omitempty"`
	// Held says that the package was on hold before, and is to be on hold after.
	Held bool `json:"held,omitempty"`
}

// SourceChange points a source file to another repository.
type SourceChange struct {
	Name string `json:"name"`
	File string `json:"file"`
	From string `json:"from"` // URI before; "" = the source is not on the host, the file is made
	To   string `json:"to"`   // URI after; "" = the file is removed
	// Suites, Components and SignedBy for a source that comes from spec; empty: as in the file.
	Suites     []string `json:"suites,omitempty"`
	Components []string `json:"components,omitempty"`
	SignedBy   string   `json:"signedBy,omitempty"`
	// Was is what a source that is on the host says and spec wants otherwise; nil: only the URI changes.
	Was *SourceWords `json:"was,omitempty"`
}

// SourceWords is what a source says besides its URI.
type SourceWords struct {
	Suites     []string `json:"suites,omitempty"`
	Components []string `json:"components,omitempty"`
	// SignedBy is as in the file; "" where it says nothing.
	SignedBy string `json:"signedBy,omitempty"`
}

// Back is the change that undoes this one.
func (c SourceChange) Back() SourceChange {
	c.From, c.To = c.To, c.From
	if was := c.Was; was != nil {
		c.Was = &SourceWords{Suites: c.Suites, Components: c.Components, SignedBy: c.SignedBy}
		c.Suites, c.Components, c.SignedBy = was.Suites, was.Components, was.SignedBy
	}
	return c
}

// FileChange writes one managed file.
type FileChange struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Mode    uint32 `json:"mode"`
	Remove  bool   `json:"remove,omitempty"`
}

// KubeadmUpgrade runs kubeadm of the target version.
type KubeadmUpgrade struct {
	Role    v1alpha1.KubeadmRole `json:"role"` // First: upgrade apply; Other: upgrade node (also for workers)
	Version string               `json:"version"`
	// ControlPlane says whether this host has control-plane static pods.
	ControlPlane bool `json:"controlPlane,omitempty"`
	// IgnorePreflightErrors are ids from the spec, one by one.
	IgnorePreflightErrors []string `json:"ignorePreflightErrors,omitempty"`
	// SkipPhases are phases from the spec that kubeadm leaves out, such as addon/coredns.
	SkipPhases []string `json:"skipPhases,omitempty"`
	// Addons are what kubeadm rolls over the whole cluster at the end of this run, by the names of its phases.
	Addons []string `json:"addons,omitempty"`
	// Images that kubeadm will need, staged before.
	Images []string `json:"images,omitempty"`
}

// Renewal renews every certificate that kubeadm manages.
type Renewal struct {
	// Before is how long each must be good for afterwards, as spec has it: one that is not would be renewed again at once.
	Before string `json:"before"`
	// Due are those that end sooner.
	Due []CertFacts `json:"due,omitempty"`
}

// Expectation is what must be observed. Empty fields are not looked at. Versions are
// compared with SameKubernetes and SameRuntime, vendor suffixes aside. Packages: Preflight
// expects From to be installed, Verify expects To; an empty one, that there is none.
type Expectation struct {
	Kubelet      string          `json:"kubelet,omitempty"`
	ControlPlane string          `json:"controlPlane,omitempty"`
	RuntimeName  string          `json:"runtimeName,omitempty"`
	Runtime      string          `json:"runtime,omitempty"`
	Etcd         string          `json:"etcd,omitempty"` // of the member on this host, as it says itself
	Packages     []PackageChange `json:"packages,omitempty"`
	BootIDNot    string          `json:"bootIDNot,omitempty"`
	BootID       string          `json:"bootID,omitempty"` // Preflight: the plan was made in this boot
	StartSandbox bool            `json:"startSandbox,omitempty"`
	// EtcdMember wants the member of etcd on this host to take part again: healthy, with a vote, caught up.
	EtcdMember bool `json:"etcdMember,omitempty"`
	// Agent wants Refit's agent to be the one on disk, with an executor that answers, and to be heard by its API server.
	Agent bool `json:"agent,omitempty"`
	// KubeletConfiguration must be effective; one without fields wants nothing of Refit's left.
	KubeletConfiguration *KubeletWish `json:"kubeletConfiguration,omitempty"`
}

// Finding is one result of preflight; severity Error blocks the plan.
type Finding = v1alpha1.Finding

// Plan is what will be done on one host under one grant.
type Plan struct {
	AssignmentID string                 `json:"assignmentID"`
	Type         v1alpha1.OperationType `json:"type"`
	Disruption   v1alpha1.Disruption    `json:"disruption"`
	// Stage is disruption-free preparation, done before the grant.
	Stage *Step `json:"stage,omitempty"`
	// Steps are done under the grant.
	Steps    []Step    `json:"steps"`
	Findings []Finding `json:"findings,omitempty"`
	// Hash covers disruption, stage and steps.
	Hash string `json:"hash"`
}

// Operation is what the agent hands to the executor: an accepted plan with its grant.
// The executor runs it at most once; a known id is answered with its recorded outcome.
type Operation struct {
	ID      string `json:"id"` // the grant id
	Machine string `json:"machine"`
	Plan    Plan   `json:"plan"`
}

// MarshalStable is the canonical JSON of a value: the input of hashes.
func MarshalStable(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return data, nil
}
