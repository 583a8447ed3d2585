package simulation

import (
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kind of the document that says how a simulation goes. No CRD has it.
const Kind = "Simulation"

// Defaults of a simulation that names none.
const (
	DefaultUntil  = 30 * 24 * time.Hour
	DefaultStage  = 30 * time.Second
	DefaultDrain  = 2 * time.Minute
	DefaultApply  = 3 * time.Minute
	DefaultVerify = 20 * time.Second
	DefaultPods   = 10 * time.Second
)

// DefaultStart is a Monday.
var DefaultStart = time.Date(2030, 1, 7, 8, 0, 0, 0, time.UTC)

// Simulation is how a rollout is to be played.
type Simulation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the simulation.
	Spec Spec `json:"spec,omitempty"`
}

// Spec of a simulation.
type Spec struct {
	// Start is the time at which the clock begins.
	Start *metav1.Time `json:"start,omitempty"`
	// Until ends a simulation that has come to no end by then.
	Until *metav1.Duration `json:"until,omitempty"`
	// Seed of the durations that are drawn.
	Seed uint64 `json:"seed,omitempty"`
	// Look is the least time between two looks at the whole fleet. Unset: a second for each 100 machines.
	Look *metav1.Duration `json:"look,omitempty"`
	// Releases that every host's package sources offer, for the minors that a control plane passes
	// through. A minor of which none is named is passed through with its first release.
	Releases []v1alpha1.KubernetesVersion `json:"releases,omitempty"`
	// Durations of the phases.
	Durations Durations `json:"durations,omitempty"`
	// Checks that ask Prometheus, by name, and whether they pass. One that is not named passes.
	Checks map[string]bool `json:"checks,omitempty"`
	// Machines that are made up.
	Machines []Generator `json:"machines,omitempty"`
	// Events that happen by themselves.
	Events []Event `json:"events,omitempty"`
}

// Durations are how long the phases take, and where they take another time.
type Durations struct {
	PhaseDurations `json:",inline"`
	// Overrides for some machines; of several that match, the last that names a phase counts.
	Overrides []Override `json:"overrides,omitempty"`
}

// PhaseDurations by phase; an unset one has its default.
type PhaseDurations struct {
	// Stage is from assignment to frozen plan with everything on the host.
	Stage *Duration `json:"stage,omitempty"`
	// Drain is how long an evicted pod takes to end, and the whole drain of a node without pods.
	Drain *Duration `json:"drain,omitempty"`
	// Apply is the operation on the host.
	Apply *Duration `json:"apply,omitempty"`
	// Verify is from the end of the operation until the kubelet shows that it lives.
	Verify *Duration `json:"verify,omitempty"`
	// Pods is how long a pod takes to become ready on another node.
	Pods *Duration `json:"pods,omitempty"`
}

// Override is the durations of some machines: those that are named or selected.
type Override struct {
	// Machines by name.
	Machines []string `json:"machines,omitempty"`
	// Selector of Machines by their labels.
	Selector       *metav1.LabelSelector `json:"selector,omitempty"`
	PhaseDurations `json:",inline"`
}

// Generator makes up machines, each with a Node.
type Generator struct {
	// Name that they begin with.
	Name string `json:"name"`
	// Count of machines.
	Count int `json:"count"`
	// Roles of each. Unset: Worker.
	Roles []v1alpha1.Role `json:"roles,omitempty"`
	// Labels of each Machine.
	Labels map[string]string `json:"labels,omitempty"`
	// Versions that run on them.
	Versions v1alpha1.Versions `json:"versions"`
	// Wish is what each spec.versions names by itself, next to what a MachineDeployment writes there.
	Wish *v1alpha1.Versions `json:"wish,omitempty"`
	// TopologyKey and Domains: a label of the Nodes, and the values that they take in turn.
	TopologyKey string   `json:"topologyKey,omitempty"`
	Domains     []string `json:"domains,omitempty"`
}

// Event is something that happens at a moment. Which fields it needs is the action's to say.
type Event struct {
	// At is a time in RFC 3339, or how long after the start.
	At string `json:"at"`
	// Action is what happens.
	Action string `json:"action"`
	// Machine that it happens to.
	Machine string `json:"machine,omitempty"`
	// Object as Kind/name, or Kind/namespace/name of pods and their budgets.
	Object string `json:"object,omitempty"`
	// Patch is a JSON merge patch.
	Patch *runtime.RawExtension `json:"patch,omitempty"`
	// Check by its name, and whether it passes from then on.
	Check  string `json:"check,omitempty"`
	Passes *bool  `json:"passes,omitempty"`
	// Reason that an operation fails with.
	Reason string `json:"reason,omitempty"`
	// RolledBack says that a failed operation leaves the host as it was.
	RolledBack *bool `json:"rolledBack,omitempty"`
}

// Scenario is everything that a simulation begins with.
type Scenario struct {
	Spec        Spec
	Namespace   string
	Machines    []v1alpha1.Machine
	Deployments []v1alpha1.MachineDeployment
	Budgets     []v1alpha1.MachineDisruptionBudget
	Nodes       []corev1.Node
	Pods        []corev1.Pod
	PodBudgets  []policyv1.PodDisruptionBudget
	// Where a field was read, such as pool.yaml:12, by the object as an InputError has it; nil: nowhere.
	Where func(object, field string) string
	// Check judges an object of Refit's that an event has changed, as the API server would; nil: none is.
	Check func(kind string, object, old map[string]any) error
}
