package upgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// PlanInput is everything a plan depends on. The same input gives the same plan.
type PlanInput struct {
	// Machine is the name of the Machine; "" on a host without a cluster.
	Machine    string
	Spec       v1alpha1.MachineSpec
	Assignment v1alpha1.Assignment
	Facts      Facts
	// Candidates are the answer to the CandidateRequest of Sources.
	Candidates []Candidate
	// Security are the answer to SecurityRequest, and SecurityKnown that it was asked.
	Security      []Candidate
	SecurityKnown bool
	// Kept is what Refit left on the host before, and keeps as it is.
	Kept Kept
	// Rebooted are the reasons for which Refit has rebooted the host since it last asked for no reboot.
	Rebooted []string
	// Record lists the sets of versions that this host ran successfully before: only
	// they may be gone back to.
	Record []v1alpha1.Versions
	// Now is when the host was looked at, for what ends by a date; unset: such things are not judged.
	Now time.Time
	// Standalone says that nobody answers for the API servers: a host that is planned
	// without a cluster. Skew is then a warning, not a refusal.
	Standalone bool
	// EtcdMoved says that an earlier hop brings another etcd than the one in Facts, at least as new.
	EtcdMoved bool
	// Kubelet is how the Machine reports its kubelet's configuration, for an estimate without facts.
	Kubelet *v1alpha1.ObservedKubelet
	// Estimate says that the host's packages, or what its repositories offer, are not
	// known. The plan then says what the versions imply, names no file, and has no
	// stage and no hash: it cannot be run.
	Estimate bool
}

// NewPlan turns one assignment into steps for one host, or refuses with *Blocked.
// Everything that is pending goes into one window, ordered so that each step finds
// what it needs:
//
//	preflight, pre-apply hooks
//	a snapshot of etcd, its guard, its leadership moved away   (where its member is disturbed)
//	OS packages
//	package sources, kubeadm, kubeadm upgrade   (control plane, kubelet configuration)
//	certificates, static pods                   (where kubeadm upgrade has not renewed them)
//	etcd                                        (of a host without a control plane)
//	sandboxes stopped, runtime                  (before the kubelet that will use it)
//	kubelet, kubectl, the kubelet's configuration
//	reboot, verify, post-apply hooks
//
// A plan without steps says that the host already is what the assignment asks for.
func NewPlan(in PlanInput) (Plan, error) {
	p := newPlanner(in)
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	for _, part := range []func() error{p.osPackages, p.sources, p.kubeadm, p.certificates, p.etcd, p.runtime, p.kubelet, p.keep, p.reboot, p.pendingRestarts, p.withinPolicy, p.preflight} {
		if err := part(); err != nil {
			return Plan{}, err
		}
	}
	return p.finish()
}

// Check refuses what no candidate could make right, as NewPlan does, and says whether
// the plan needs candidates at all: nothing is fetched that would change nothing.
func Check(in PlanInput) (needsCandidates bool, err error) {
	p := newPlanner(in)
	err = p.check()
	return err == nil && p.packagesMove(), err
}

// planner collects a plan. Its parts run in the order of the steps they add.
type planner struct {
	in        PlanInput
	order     Ordering
	installed map[string]InstalledPackage
	want      wanted

	steps      []Step
	changes    []PackageChange
	disruption v1alpha1.Disruption
	findings   []Finding
	// units that a step has stopped and a later one must start.
	kubeletStopped bool
	restarted      bool
	// starts are the versions that the plan's restarts start from what is on disk already;
	// "" where what runs, or what the plan brings, is what starts.
	starts struct{ kubelet, runtime, etcd string }
}

func newPlanner(in PlanInput) *planner {
	p := &planner{in: in, order: OrderingOf(in.Facts.Packages.Manager), installed: map[string]InstalledPackage{}, disruption: v1alpha1.DisruptionNone}
	if p.order == nil && in.Estimate {
		p.order = equalOnly
	}
	for _, pkg := range in.Facts.Packages.Installed {
		if pkg.installed() {
			p.installed[pkg.Name] = pkg
		}
	}
	return p
}

// finish puts preflight, hooks and verification around the work, and seals the plan.
func (p *planner) finish() (Plan, error) {
	plan := Plan{AssignmentID: p.in.Assignment.ID, Type: p.operationType(), Disruption: p.disruption, Steps: []Step{}, Findings: p.findings}
	if len(p.steps) > 0 {
		plan.Steps = p.frame()
		plan.Stage = p.stage()
	}
	if p.in.Estimate {
		plan.Stage = nil
		return plan, nil
	}
	hash, err := plan.ComputeHash()
	if err != nil {
		return Plan{}, err
	}
	plan.Hash = hash
	return plan, nil
}

func (p *planner) frame() []Step {
	steps := []Step{{Kind: StepPreflight, Expect: p.before()}}
	if h := p.in.Spec.Hooks; h != nil {
		steps = append(steps, hooks(h.PreApply)...)
	}
	steps = append(steps, p.guardsEtcd()...)
	steps = append(steps, p.guarded(p.steps)...)
	steps = append(steps, Step{Kind: StepVerify, Expect: p.after()})
	if h := p.in.Spec.Hooks; h != nil {
		steps = append(steps, hooks(h.PostApply)...)
	}
	return steps
}

func hooks(names []v1alpha1.HookName) []Step {
	var steps []Step
	for _, name := range names {
		steps = append(steps, Step{Kind: StepRunHook, Hook: string(name)})
	}
	return steps
}

// stage is what must be on the host before the grant.
func (p *planner) stage() *Step {
	var files []PackageChange
	for _, c := range p.changes {
		if c.To != "" {
			files = append(files, c)
		}
	}
	stage := &Step{Kind: StepStage, Packages: files}
	for _, s := range p.steps {
		if s.Kind == StepKubeadmUpgrade { // whose images are found out by the host
			stage.Kubeadm = s.Kubeadm
		}
	}
	if len(stage.Packages) == 0 && stage.Kubeadm == nil {
		return nil
	}
	return stage
}

// before is what the plan was made for: anything else means that the host has moved since.
func (p *planner) before() *Expectation {
	e := p.observed()
	e.Packages = p.namedChanges()
	return e
}

// after is what must be seen when all is done: the target, and what it leaves alone as it was.
func (p *planner) after() *Expectation {
	e := p.observed()
	e.Packages = p.namedChanges()
	e.Kubelet, e.Runtime = firstOf(p.starts.kubelet, e.Kubelet), firstOf(p.starts.runtime, e.Runtime)
	e.Etcd = firstOf(p.starts.etcd, e.Etcd)
	t := p.in.Assignment.Target
	if t.Kubelet != "" {
		e.Kubelet = string(t.Kubelet)
	}
	if p.want.etcd.Known() {
		e.Etcd = p.want.etcd.Upstream()
	}
	if t.ControlPlane != "" {
		e.ControlPlane = string(t.ControlPlane)
	}
	if p.want.configChanges {
		e.KubeletConfiguration = &p.want.config
	}
	if r := t.ContainerRuntime; r != nil && r.Version != "" {
		e.RuntimeName, e.Runtime = string(r.Name), string(r.Version)
	}
	if p.disruption == v1alpha1.DisruptionReboot {
		e.BootIDNot = p.in.Facts.Host.BootID
	}
	e.StartSandbox = p.restarted && !p.etcdAlone()
	e.Agent = slices.ContainsFunc(p.steps, func(s Step) bool { return s.Kind == StepRestartUnit && s.Unit == unitRefit })
	e.EtcdMember = p.disturbsMember() && !p.memberDown()
	return e
}

// namedChanges are the package changes without where their files come from.
func (p *planner) namedChanges() []PackageChange {
	var named []PackageChange
	for _, c := range p.changes {
		named = append(named, PackageChange{Name: c.Name, From: c.From, To: c.To})
	}
	return named
}

// observed expects what runs now; what is not understood is not looked at.
func (p *planner) observed() *Expectation {
	e := &Expectation{}
	f := p.in.Facts
	if f.Kubelet != nil && known(ParseKubernetes(f.Kubelet.Running)) {
		e.Kubelet = f.Kubelet.Running
	}
	if f.Control != nil && known(ParseKubernetes(f.Control.APIServer)) {
		e.ControlPlane = f.Control.APIServer
	}
	if f.EtcdUnit != nil && p.etcdHere() && known(ParseRelease(f.etcdVersion())) {
		e.Etcd = f.etcdVersion()
	}
	if f.Runtime != nil {
		if _, ok := ParseRuntime(f.Runtime.Running); ok {
			e.RuntimeName, e.Runtime = f.Runtime.Name, f.Runtime.Running
		}
	}
	return e
}

func known(_ Version, ok bool) bool { return ok }

// disturb raises the plan's disruption; it never lowers it.
func (p *planner) disturb(d v1alpha1.Disruption) {
	if rank(d) > rank(p.disruption) {
		p.disruption = d
	}
}

// rank orders disruptions from least to most.
func rank(d v1alpha1.Disruption) int {
	return slices.Index([]v1alpha1.Disruption{v1alpha1.DisruptionNone, v1alpha1.DisruptionRestart, v1alpha1.DisruptionDrain, v1alpha1.DisruptionReboot}, d)
}

func (p *planner) add(steps ...Step) { p.steps = append(p.steps, steps...) }

func (p *planner) find(f Finding) { p.findings = append(p.findings, f) }

// Empty says that there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// ComputeHash is the digest of exactly what will be done: disruption, stage and
// steps. Who asked for it, and what was found on the way, is not part of it.
func (p *Plan) ComputeHash() (string, error) {
	done := struct {
		Disruption v1alpha1.Disruption `json:"disruption"`
		Stage      *Step               `json:"stage,omitempty"`
		Steps      []Step              `json:"steps"`
	}{p.Disruption, p.Stage, p.Steps}
	data, err := MarshalStable(done)
	if err != nil {
		return "", fmt.Errorf("encoding the plan for its hash: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
