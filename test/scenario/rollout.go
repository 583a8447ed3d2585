package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Wish is what the pools are edited to.
type Wish struct {
	Kubernetes string // v1.37.2
	Containerd string // 2.4.2
}

// Edit changes the versions in every MachineDeployment: the one edit of the demo.
func (e *Env) Edit(ctx context.Context, w Wish) error {
	var pools v1alpha1.MachineDeploymentList
	if err := e.Client.List(ctx, &pools, client.InNamespace(MachineNamespace)); err != nil {
		return fmt.Errorf("listing the pools: %w", err)
	}
	if len(pools.Items) == 0 {
		return fmt.Errorf("there is no MachineDeployment in namespace %s: adopt the machines first", MachineNamespace)
	}
	for i := range pools.Items {
		p := &pools.Items[i]
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": edit(p, w)}}})
		if err != nil {
			return fmt.Errorf("writing the edit of %s: %w", p.Name, err)
		}
		if err := e.Client.Patch(ctx, p, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("editing MachineDeployment %s: %w", p.Name, err)
		}
	}
	return nil
}

func edit(p *v1alpha1.MachineDeployment, w Wish) map[string]any {
	versions := map[string]any{"kubelet": w.Kubernetes, "containerRuntime": map[string]any{"name": "containerd", "version": w.Containerd}}
	// kubeadm's SystemVerification refuses the cgroup v1 of the machine that the fleet's hosts may share.
	spec := map[string]any{"versions": versions, "kubeadm": map[string]any{"ignorePreflightErrors": []string{"SystemVerification"}}}
	if v := p.Spec.Template.Spec.Versions; v != nil && v.ControlPlane != "" {
		versions["controlPlane"] = w.Kubernetes
	}
	return spec
}

// Machines lists the machines by name.
func (e *Env) Machines(ctx context.Context) ([]v1alpha1.Machine, error) {
	var l v1alpha1.MachineList
	if err := e.Client.List(ctx, &l, client.InNamespace(MachineNamespace)); err != nil {
		return nil, fmt.Errorf("listing the machines: %w", err)
	}
	sort.Slice(l.Items, func(i, j int) bool { return l.Items[i].Name < l.Items[j].Name })
	return l.Items, nil
}

// Change is one thing that a follower saw on a machine.
type Change struct {
	Time    time.Time
	Machine v1alpha1.Machine
}

// Follow reports every change of phase or step of the machines until done says so.
// The API server may go away meanwhile; what was missed is not made up.
func (e *Env) Follow(ctx context.Context, done func([]v1alpha1.Machine) (bool, error), saw func(Change)) error {
	last, away := map[string]string{}, false
	var seen []v1alpha1.Machine // at the last answer: the list that the end of ctx cuts off is empty
	for {
		machines, err := e.Machines(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("following the rollout: %w; machines: %s", ctx.Err(), summarise(seen))
		}
		if err != nil && !away {
			away = true
			e.Say("          (the API server does not answer; waiting for it)")
		}
		if err == nil {
			away, seen = false, machines
			for i := range machines {
				if s := state(&machines[i]); s != last[machines[i].Name] {
					last[machines[i].Name] = s
					saw(Change{Time: time.Now(), Machine: machines[i]})
				}
			}
			if ok, err := done(machines); ok || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func state(m *v1alpha1.Machine) string {
	s := string(m.Status.Phase)
	if op := m.Status.LastOperation; op != nil && op.State == v1alpha1.OperationProcessing {
		s += fmt.Sprintf(" %s %d/%d", op.Step, op.StepsDone, op.StepsTotal)
	}
	return s
}

func summarise(ms []v1alpha1.Machine) string {
	if len(ms) == 0 {
		return "none were seen"
	}
	parts := make([]string, 0, len(ms))
	for i := range ms {
		parts = append(parts, strings.TrimSpace(ms[i].Name+" "+state(&ms[i])+" "+WhyNot(&ms[i])))
	}
	return strings.Join(parts, "; ")
}

// WhyNot is the machine's own word on why it is not up to date.
func WhyNot(m *v1alpha1.Machine) string {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate); c != nil && c.Status != metav1.ConditionTrue {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// AllAt says that every machine runs the wish, and serves. A machine that is stalled at
// its present generation ends the wait with an error.
func AllAt(w Wish) func([]v1alpha1.Machine) (bool, error) {
	return func(ms []v1alpha1.Machine) (bool, error) {
		for i := range ms {
			c := meta.FindStatusCondition(ms[i].Status.Conditions, v1alpha1.ConditionStalled)
			if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == ms[i].Generation {
				return false, fmt.Errorf("machine %s is stalled: %s: %s", ms[i].Name, c.Reason, c.Message)
			}
			if !runs(&ms[i], w) {
				return false, nil
			}
		}
		return len(ms) > 0, nil
	}
}

func runs(m *v1alpha1.Machine, w Wish) bool {
	return meets(m, w) && m.Status.Phase == v1alpha1.PhaseReady
}

// meets says that the machine runs the wish and needs nothing else, whether it serves or stands by.
func meets(m *v1alpha1.Machine, w Wish) bool {
	v := m.Status.Versions
	if v == nil || v.Kubelet != w.Kubernetes || v.ContainerRuntime == nil || strings.TrimPrefix(v.ContainerRuntime.Version, "v") != w.Containerd {
		return false
	}
	if v.ControlPlane != nil && v.ControlPlane.APIServer != w.Kubernetes {
		return false
	}
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionUpToDate)
}

// PrintTimings prints the durations of the last operation of each machine by phase.
func PrintTimings(out io.Writer, ms []v1alpha1.Machine) {
	names := []string{"Wait", "Drain", "Apply", "Restart", "Ready"}
	tw := tabwriter.NewWriter(out, 0, 4, 3, ' ', 0)
	fmt.Fprintf(tw, "MACHINE\tOPERATION\tSTATE\t%s\n", strings.ToUpper(strings.Join(names, "\t")))
	for i := range ms {
		for _, h := range ms[i].Status.History {
			row := []string{ms[i].Name, string(h.Type), string(h.State)}
			for _, n := range names {
				row = append(row, duration(h.Phases, n))
			}
			fmt.Fprintln(tw, strings.Join(row, "\t"))
		}
	}
	tw.Flush()
}

func duration(phases []v1alpha1.PhaseDuration, name string) string {
	for _, p := range phases {
		if p.Name == name {
			return p.Duration.Duration.Round(100 * time.Millisecond).String()
		}
	}
	return "-"
}
