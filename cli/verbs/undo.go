package verbs

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/plan"
	"github.com/refit-dev/refit/coordinator/machinedeployment"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

// Undone is what a pool would go back to.
type Undone struct {
	Change   Change
	Revision int64
	// Diff of the templates, for people.
	Diff string
}

// Undo restores the template of a revision, of the one before the current one where number
// is 0. What no machine can go back from is refused here, by the planner's own word; what
// some machine would refuse by itself is noted.
func (n *Namespace) Undo(ctx context.Context, cl, nodes client.Reader, d *v1alpha1.MachineDeployment, number int64) (Undone, error) {
	revisions, err := machinedeployment.Revisions(ctx, cl, d)
	if err != nil {
		return Undone{}, err
	}
	now, err := machinedeployment.CurrentOf(d, revisions)
	if err != nil {
		return Undone{}, err
	}
	to, err := revisionFor(d, revisions, now, number)
	if err != nil {
		return Undone{}, err
	}
	u := Undone{Revision: to.Revision, Change: Change{Before: d, Done: fmt.Sprintf("already at revision %d", to.Revision)}}
	if to == now {
		return u, nil
	}
	template, err := machinedeployment.TemplateOf(to)
	if err != nil {
		return u, err
	}
	after := d.DeepCopy()
	after.Spec.Template = template
	removeAnnotation(after, machinedeployment.AnnotationChangeCause)
	if cause := to.Annotations[machinedeployment.AnnotationChangeCause]; cause != "" {
		annotate(after, machinedeployment.AnnotationChangeCause, cause)
	}
	u.Change.After, u.Change.Exact, u.Change.Done = after, true, fmt.Sprintf("rolled back to revision %d", to.Revision)
	u.Diff = diff.Diff(d.Spec.Template, template)
	u.Change.Notes, err = n.judgeUndo(ctx, nodes, after)
	return u, err
}

func revisionFor(d *v1alpha1.MachineDeployment, all []*appsv1.ControllerRevision, now *appsv1.ControllerRevision, number int64) (*appsv1.ControllerRevision, error) {
	var numbers []string
	var before *appsv1.ControllerRevision
	for _, r := range all {
		if r.Revision == number {
			return r, nil
		}
		if r != now {
			before = r
		}
		numbers = append(numbers, fmt.Sprint(r.Revision))
	}
	switch {
	case number != 0:
		return nil, usage.Errorf("pool %s has no revision %d: there are %s (see kubectl refit history %s)", d.Name, number, listed(numbers), d.Name)
	case before == nil:
		return nil, Refused{fmt.Sprintf("pool %s has no earlier revision to go back to", d.Name)}
	}
	return before, nil
}

// judgeUndo plans the pool with the restored template as the coordinator will, whether it
// is paused or has failed now.
func (n *Namespace) judgeUndo(ctx context.Context, from client.Reader, after *v1alpha1.MachineDeployment) ([]string, error) {
	var nodes corev1.NodeList
	if err := from.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	f := &plan.Fleet{}
	pools := append([]v1alpha1.MachineDeployment{}, n.Pools...)
	for i := range pools {
		if pools[i].Name == after.Name {
			pools[i] = *after
		}
	}
	f.AddLive(unheld(n.Machines), pools, nodes.Items)
	list, err := f.Plan(nil, time.Now())
	if err != nil {
		return nil, err
	}
	var never, some []string
	for _, p := range list.Items {
		if p.MachineDeployment != after.Name {
			continue
		}
		if why := goesBack(p); why != "" {
			never = append(never, fmt.Sprintf("machine %s: %s", p.Machine, why))
		} else if p.Refusal != nil {
			some = append(some, fmt.Sprintf("machine %s will not follow now (%s): %s", p.Machine, p.Refusal.Reason, p.Refusal.Message))
		}
	}
	if len(never) > 0 {
		return nil, Refused{"this cannot be undone: " + strings.Join(never, "; ")}
	}
	if after.Spec.Paused {
		some = append(some, fmt.Sprintf("pool %s is paused: kubectl refit resume %s has it go back", after.Name, after.Name))
	}
	return some, nil
}

// unheld are the machines without what holds them now and a new spec, or a person, ends.
func unheld(machines []v1alpha1.Machine) []v1alpha1.Machine {
	out := make([]v1alpha1.Machine, 0, len(machines))
	for i := range machines {
		m := machines[i].DeepCopy()
		m.Spec.Paused, m.Status.RolloutFailure = false, nil
		out = append(out, *m)
	}
	return out
}

// goesBack says why a machine can never follow: its control plane or its etcd would go back.
func goesBack(p preview.MachinePlan) string {
	if p.To == nil || p.From == nil {
		return ""
	}
	if c := p.From.ControlPlane; c != nil && p.Refusal != nil {
		want, known := upgrade.ParseKubernetes(string(p.To.ControlPlane))
		now, runs := upgrade.ParseKubernetes(c.APIServer)
		if known && runs && want.LessThan(now) {
			return p.Refusal.Message
		}
	}
	want, known := upgrade.ParseRelease(string(p.To.Etcd))
	now, runs := upgrade.ParseRelease(p.From.Etcd)
	if known && runs && want.LessThan(now) {
		return fmt.Sprintf("etcd runs %s and would go back to %s: etcd never goes back, since what it has stored cannot follow", p.From.Etcd, p.To.Etcd)
	}
	return ""
}
