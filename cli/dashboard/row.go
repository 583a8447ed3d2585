package dashboard

import (
	"cmp"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
)

// Row is a machine as the grid and the timeline show it.
type Row struct {
	Name    string `json:"name"`
	Pool    string `json:"pool,omitempty"`
	Domain  string `json:"domain,omitempty"`
	Phase   string `json:"phase"`
	Version string `json:"version,omitempty"`
	// Target is what spec wants, where that is something else.
	Target string `json:"target,omitempty"`
	// Says is what it does or waits for.
	Says string `json:"says,omitempty"`
	// Work that is done now and that was done, the newest first.
	Work []Bar `json:"work,omitempty"`
}

// row of a machine; false where there is no such machine.
func (f *Fleet) row(name string) (Row, bool) {
	m := f.machines[name]
	if m == nil {
		return Row{}, false
	}
	r := Row{
		Name: name, Pool: f.poolOf(m), Domain: f.domains[name], Phase: phaseOf(m),
		Version: runs(m), Target: wants(m), Says: status.WaitsFor(m, status.Coordinator{}), Work: f.bars(m),
	}
	if r.Target == r.Version {
		r.Target = ""
	}
	return r, true
}

func phaseOf(m *v1alpha1.Machine) string {
	if !m.DeletionTimestamp.IsZero() {
		return "Deleting"
	}
	return string(cmp.Or(m.Status.Phase, v1alpha1.PhasePending))
}

// runs is the version that tells machines apart: the kubelet's, or that of a host of etcd alone.
func runs(m *v1alpha1.Machine) string {
	if v := m.Status.Versions; v != nil {
		return cmp.Or(v.Kubelet, v.Etcd)
	}
	return ""
}

func wants(m *v1alpha1.Machine) string {
	if v := m.Spec.Versions; v != nil {
		return cmp.Or(string(v.Kubelet), string(v.Etcd))
	}
	return ""
}
