package machine

import (
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// scope is what one pass knows and decides. Phases change machine.Status; read stays
// as it was read.
type scope struct {
	key     types.NamespacedName
	read    *v1alpha1.Machine
	machine *v1alpha1.Machine
	view    *fleet.Machine   // with node, slot, pool; its Machine is s.machine
	fleet   *fleet.Fleet     // of this machine alone; for the gates that look no further
	health  string           // what is not well yet, for the Healthy condition
	blocked *upgrade.Blocked // why there is no next hop
	// wishMet says that what runs is what spec wants; difference says what is not.
	wishMet    bool
	difference string
	requeue    time.Duration
	// silent is since when a host without a Node has said nothing, once that counts; zero where it has.
	silent time.Time
	// unsaid says that what this pass sees is over in a moment: the status is left as it is.
	unsaid bool
	// finished says that the operation is over, and that its slot goes with the next pass.
	finished bool
}

// soon is how long a state may last without being written: mostly it is over before anybody could read it.
const soon = time.Second

func (s *scope) slot() *v1alpha1.Slot            { return s.view.Slot }
func (s *scope) node() *fleet.Node               { return s.view.Node }
func (s *scope) status() *v1alpha1.MachineStatus { return &s.machine.Status }

// outcome of a phase: whether the pass goes on.
type outcome int

const (
	// goOn to the next phase.
	goOn outcome = iota
	// stop ends the pass; an event brings the next one.
	stop
	// again ends the pass and asks for another one at once, for a reading after the write.
	again
)

// after asks for another pass no later than d from now.
func (s *scope) after(d time.Duration) {
	if d > 0 && (s.requeue == 0 || d < s.requeue) {
		s.requeue = d
	}
}

func (s *scope) result() ctrl.Result { return ctrl.Result{RequeueAfter: s.requeue} }

// immediately is the shortest requeue: controller-runtime reads 0 as none.
const immediately = time.Millisecond
