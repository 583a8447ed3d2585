package dashboard

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
)

// Summary is how the rollouts of a namespace stand.
type Summary struct {
	Namespace   string `json:"namespace"`
	TopologyKey string `json:"topologyKey"`
	Machines    int    `json:"machines"`
	// Stopped is the namespace-wide stop switch.
	Stopped bool `json:"stopped,omitempty"`
	// Trouble says why what is shown may be older than it should be.
	Trouble []string `json:"trouble,omitempty"`
	Pools   []Pool   `json:"pools"`
}

// Pool is the rollout of one pool.
type Pool struct {
	Name     string `json:"name"`
	Machines int32  `json:"machines"`
	UpToDate int32  `json:"upToDate"`
	Ready    int32  `json:"ready"`
	InFlight int32  `json:"inFlight"`
	Failed   int32  `json:"failed,omitempty"`
	Target   string `json:"target,omitempty"`
	Paused   bool   `json:"paused,omitempty"`
	State    string `json:"state,omitempty"`
}

func (f *Fleet) summary() Summary {
	s := Summary{TopologyKey: f.topologyKey, Machines: len(f.machines), Stopped: f.stopped, Pools: []Pool{}}
	for _, name := range slices.Sorted(maps.Keys(f.pools)) {
		d := f.pools[name]
		s.Pools = append(s.Pools, Pool{
			Name: name, Machines: d.Status.Machines, UpToDate: d.Status.UpToDate, Ready: d.Status.Ready, InFlight: d.Status.InFlight,
			Failed: d.Status.Failed, Target: status.Wish(d.Spec.Template.Spec.Versions), Paused: d.Spec.Paused, State: stateOf(d),
		})
	}
	return s
}

func stateOf(d *v1alpha1.MachineDeployment) string {
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionConflict); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason + ": " + c.Message
	}
	if d.Status.ObservedGeneration < d.Generation {
		return "NotSeen: no coordinator has judged the newest edit yet"
	}
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}
