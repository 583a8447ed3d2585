package preview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Print writes a list for people: a line for each machine, and below what is to be said of them.
func Print(out io.Writer, list PlanList, wide bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	heads := []string{"MACHINE", "CONTROL-PLANE", "KUBELET", "RUNTIME", "PACKAGES", "DISRUPTION", "DRAINS", "STATE"}
	if wide {
		heads = append(heads, "ROLES", "POOL", "HOPS", "STEPS", "HASH")
	}
	row(w, heads)
	for i := range list.Items {
		row(w, cells(list.name(&list.Items[i]), &list.Items[i], wide))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for _, line := range remarks(list) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return fmt.Errorf("writing the findings: %w", err)
		}
	}
	return nil
}

func row(w io.Writer, cells []string) {
	for i := range cells {
		if cells[i] == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func cells(name string, p *MachinePlan, wide bool) []string {
	from, to := v1alpha1.ObservedVersions{}, v1alpha1.Versions{}
	if p.From != nil {
		from = *p.From
	}
	if p.To != nil {
		to = *p.To
	}
	control := v1alpha1.ObservedControlPlane{}
	if from.ControlPlane != nil {
		control = *from.ControlPlane
	}
	out := []string{
		name, move(control.APIServer, string(to.ControlPlane), upgrade.SameKubernetes), move(from.Kubelet, string(to.Kubelet), upgrade.SameKubernetes),
		runtimeMove(from.ContainerRuntime, to.ContainerRuntime), packages(p), string(p.Disruption), fmt.Sprint(p.Drains), string(p.State),
	}
	if !wide {
		return out
	}
	roles := make([]string, 0, len(p.Roles))
	for _, r := range p.Roles {
		roles = append(roles, string(r))
	}
	return append(out, strings.Join(roles, ","), p.MachineDeployment, fmt.Sprint(len(p.Hops)), fmt.Sprint(len(p.Steps)), p.Hash)
}

// move is what runs, and what it is to become where that is something else.
func move(from, to string, same func(a, b string) bool) string {
	switch {
	case to == "" || same(from, to):
		return from
	case from == "":
		from = v1alpha1.Unknown
	}
	return from + " → " + to
}

func runtimeMove(from *v1alpha1.ObservedRuntime, to *v1alpha1.ContainerRuntime) string {
	if from == nil {
		from = &v1alpha1.ObservedRuntime{}
	}
	wish := ""
	if to != nil {
		wish = string(to.Version)
	}
	text := move(from.Version, wish, upgrade.SameRuntime)
	if from.Name == "" || text == "" {
		return text
	}
	return from.Name + " " + text
}

// packages counts the packages of spec.os that move; the others are part of their component.
func packages(p *MachinePlan) string {
	n := 0
	for _, hop := range p.Hops {
		for _, step := range hop.Steps {
			for _, change := range step.Packages {
				if step.Kind == upgrade.StepInstallPackages && !managed(change.Name) {
					n++
				}
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func managed(name string) bool {
	for _, known := range upgrade.ManagedPackages() {
		if known == name {
			return true
		}
	}
	return false
}

// remarks are the refusals and findings, a line each.
func remarks(list PlanList) []string {
	var lines []string
	for i := range list.Items {
		item := &list.Items[i]
		name := list.name(item)
		if item.Refusal != nil {
			lines = append(lines, fmt.Sprintf("%s: refused: %s: %s", name, item.Refusal.Reason, oneLine(item.Refusal.Message)))
		}
		for _, f := range item.Findings {
			lines = append(lines, remark(name+": ", f))
		}
	}
	for _, f := range list.Findings {
		lines = append(lines, remark("", f))
	}
	if len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	return lines
}

func remark(of string, f upgrade.Finding) string {
	return fmt.Sprintf("%s%s: %s: %s", of, f.Severity, f.Reason, oneLine(f.Message))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
