package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/status"
)

// Print writes pools and machines as tables.
func Print(out io.Writer, pools []v1alpha1.MachineDeployment, machines []v1alpha1.Machine, coordinator Coordinator) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(pools) > 0 {
		row(w, "POOL", "MACHINES", "UPTODATE", "READY", "IN-FLIGHT", "TARGET", "PAUSED", "STATE")
		for i := range pools {
			printPool(w, &pools[i], coordinator)
		}
		fmt.Fprintln(w)
	}
	row(w, "MACHINE", "ROLES", "PHASE", "KUBELET", "CONTROL-PLANE", "RUNTIME", "TARGET", "WAITS-FOR")
	for i := range machines {
		printMachine(w, &machines[i], coordinator)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

func printPool(w io.Writer, d *v1alpha1.MachineDeployment, coordinator Coordinator) {
	s := d.Status
	target := Wish(d.Spec.Template.Spec.Versions)
	state := coordinator.unseen(d.Generation, s.ObservedGeneration)
	for _, kind := range []string{v1alpha1.ConditionConflict, v1alpha1.ConditionProgressing} {
		if c := meta.FindStatusCondition(d.Status.Conditions, kind); c != nil && state == "" && (kind == v1alpha1.ConditionProgressing || c.Status == metav1.ConditionTrue) {
			state = c.Reason + ": " + c.Message
		}
	}
	row(w, d.Name, s.Machines, s.UpToDate, s.Ready, s.InFlight, target, d.Spec.Paused, state)
}

func printMachine(w io.Writer, m *v1alpha1.Machine, coordinator Coordinator) {
	roles := make([]string, 0, len(m.Spec.Roles))
	for _, r := range m.Spec.Roles {
		roles = append(roles, string(r))
	}
	var kubelet, controlPlane, runtime string
	if v := m.Status.Versions; v != nil {
		kubelet = v.Kubelet
		if v.ControlPlane != nil {
			controlPlane = v.ControlPlane.APIServer
		} else if v.Etcd != "" {
			controlPlane = "etcd " + v.Etcd
		}
		if v.ContainerRuntime != nil {
			runtime = v.ContainerRuntime.Text
		}
	}
	phase := m.Status.Phase
	if !m.DeletionTimestamp.IsZero() {
		phase = "Deleting"
	}
	row(w, m.Name, strings.Join(roles, ","), phase, kubelet, controlPlane, runtime, Wish(m.Spec.Versions), WaitsFor(m, coordinator))
}

// Wish is all that spec.versions names, in one cell: the kubelet's version, and then what else there is.
func Wish(v *v1alpha1.Versions) string {
	if v == nil {
		return ""
	}
	var parts []string
	if v.Kubelet != "" {
		parts = append(parts, string(v.Kubelet))
	}
	if v.ControlPlane != "" && v.ControlPlane != v.Kubelet {
		parts = append(parts, "control-plane="+string(v.ControlPlane))
	}
	if r := v.ContainerRuntime; r != nil && r.Version != "" {
		parts = append(parts, fmt.Sprintf("%s=%s", r.Name, r.Version))
	}
	if v.Etcd != "" {
		parts = append(parts, "etcd="+string(v.Etcd))
	}
	return strings.Join(parts, ",")
}

// WaitsFor says in one line what a machine does or waits for; "" when there is nothing.
func WaitsFor(m *v1alpha1.Machine, coordinator Coordinator) string {
	if op := m.Status.LastOperation; op != nil && op.State == v1alpha1.OperationProcessing {
		return status.Progress(op)
	}
	if !m.DeletionTimestamp.IsZero() { // it waits for no turn any more
		return cmp.Or(holds(m, v1alpha1.ConditionStalled), hostFailure(m), atWork(m),
			"Deleting: held by its finalizers "+strings.Join(m.Finalizers, ", "))
	}
	return cmp.Or(
		unseen(m, coordinator), // what follows was judged by an older spec
		holds(m, v1alpha1.ConditionStalled),
		holds(m, v1alpha1.ConditionHeld),
		atWork(m),
		holds(m, v1alpha1.ConditionOverridden),
		holds(m, v1alpha1.ConditionWaiting),
		hostFailure(m),
		silent(m),
		lacking(m),
		holds(m, v1alpha1.ConditionPackagesBroken), // what is wrong with a host that nothing is to be done to
		holds(m, v1alpha1.ConditionCertificatesExpiring),
	)
}

// unseen is for a machine whose newest spec no coordinator has judged. Of a host that has
// never reported there is more to say.
func unseen(m *v1alpha1.Machine, coordinator Coordinator) string {
	if m.Status.Host == nil {
		return ""
	}
	seen := int64(0)
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate); c != nil {
		seen = c.ObservedGeneration
	}
	return coordinator.unseen(m.Generation, seen)
}

// holds words a condition that is True; "" for any other.
func holds(m *v1alpha1.Machine, kind string) string {
	c := meta.FindStatusCondition(m.Status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// atWork is the drain or the change that goes on now, which is newer than whatever an
// earlier attempt has left on the Machine. An earlier drain that failed is told by Waiting
// until its next try, and an operation that failed by Stalled.
func atWork(m *v1alpha1.Machine) string {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
	working := []string{status.ReasonDraining, status.ReasonDrained, status.ReasonApplying}
	if c == nil || c.Status == metav1.ConditionTrue || !slices.Contains(working, c.Reason) {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func hostFailure(m *v1alpha1.Machine) string {
	if f := m.Status.HostFailure; f != nil {
		return f.Reason + ": " + f.Message
	}
	return ""
}

func silent(m *v1alpha1.Machine) string {
	if m.Status.Host == nil {
		return "AgentSilent: the agent of this host has never reported"
	}
	return ""
}

// lacking is the first of the two conditions of a machine that is well that does not hold.
func lacking(m *v1alpha1.Machine) string {
	lacks := []string{v1alpha1.ConditionUpToDate, v1alpha1.ConditionHealthy}
	if m.Status.Phase == v1alpha1.PhaseVerifying { // the change is made: only health is waited for
		slices.Reverse(lacks)
	}
	for _, kind := range lacks {
		if c := meta.FindStatusCondition(m.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// breaks are the characters of a message that would end a cell or a line of the table.
var breaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ", "\v", " ", "\f", " ")

// row writes one line of cells; an empty cell is shown as a dash.
func row(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		if texts[i] = breaks.Replace(fmt.Sprint(c)); texts[i] == "" && i < len(cells)-1 {
			texts[i] = "-"
		}
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}
