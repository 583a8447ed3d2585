package machinedeployment

import (
	"fmt"
	"strings"
	"sync"

	"github.com/refit-dev/refit/api/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kept remembers for which states of a MachineDeployment and its revisions there was nothing
// to write: what each of them asks for is not read anew in every pass.
type kept struct {
	mu   sync.Mutex
	last map[types.UID]keptState
}

type keptState struct{ state, current string }

// current is the name of the current revision, "" where that has to be found out.
func (k *kept) current(d *v1alpha1.MachineDeployment, known []*appsv1.ControllerRevision) string {
	state := stateFor(d, known)
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := k.last[d.UID]; state != "" && last.state == state {
		return last.current
	}
	return ""
}

func (k *kept) keep(d *v1alpha1.MachineDeployment, known []*appsv1.ControllerRevision, current string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		k.last = map[types.UID]keptState{}
	}
	k.last[d.UID] = keptState{stateFor(d, known), current}
}

// stateFor is all that it depends on whether something is to be written; "" where more does:
// of revisions beyond the limit, which machines run them.
func stateFor(d *v1alpha1.MachineDeployment, known []*appsv1.ControllerRevision) string {
	limit := DefaultRevisionHistoryLimit
	if l := d.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	if d.Generation == 0 || len(known) > limit+1 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d %d %q", d.Generation, limit, d.Annotations[AnnotationChangeCause])
	for _, r := range known {
		if r.ResourceVersion == "" {
			return ""
		}
		fmt.Fprintf(&out, " %s %s", r.UID, r.ResourceVersion)
	}
	return out.String()
}
