package upgrade

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// etcdHost is a control plane of one release, with its etcd, on its way to another.
func etcdHost(name, now, etcd, wish string) HostState {
	v := v1alpha1.KubernetesVersion(wish)
	return HostState{
		Name: name, Managed: true, Roles: []v1alpha1.Role{v1alpha1.RoleControlPlane}, APIServer: APIServerOnHost,
		Versions: v1alpha1.ObservedVersions{
			Kubelet: now, Etcd: etcd, ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: now, ControllerManager: now, Scheduler: now},
		},
		Wish: v1alpha1.Versions{ControlPlane: v, Kubelet: v},
	}
}

func TestNoControlPlaneBringsEtcd36WhileAnyMemberIsBelowItsFloorOrUnknown(t *testing.T) {
	for name, tc := range map[string]struct {
		etcd     []string
		now, to  string
		refused  string
		names    []string
		terminal []bool
	}{
		"one of two is too old":          {etcd: []string{"3.5.24", "3.5.21"}, now: "v1.33.9", to: "v1.34.9", refused: FindingEtcdTooOld, names: []string{"cp2 (3.5.21)"}, terminal: []bool{false, true}},
		"one of three is too old":        {etcd: []string{"3.5.24-0", "3.5.21-0", "3.5.24-0"}, now: "v1.33.9", to: "v1.34.9", refused: FindingEtcdTooOld, names: []string{"cp2 (3.5.21-0)"}, terminal: []bool{false, true, false}},
		"two of three are too old":       {etcd: []string{"3.5.21", "3.5.26", "3.5.23"}, now: "v1.33.9", to: "v1.34.9", refused: FindingEtcdTooOld, names: []string{"cp1 (3.5.21)", "cp3 (3.5.23)"}, terminal: []bool{true, false, true}},
		"one does not say what it is":    {etcd: []string{"3.5.24", "", "3.5.24"}, now: "v1.33.9", to: "v1.34.9", refused: FindingFactUnknown, names: []string{`cp2 ("")`}, terminal: []bool{false, false, false}},
		"one says what is no version":    {etcd: []string{"3.5.24", "latest"}, now: "v1.33.9", to: "v1.34.9", refused: FindingFactUnknown, names: []string{`cp2 ("latest")`}, terminal: []bool{false, false}},
		"all are at the floor":           {etcd: []string{"3.5.24", "3.5.24", "3.5.26"}, now: "v1.33.9", to: "v1.34.9"},
		"all have it already":            {etcd: []string{"3.6.4", "3.6.4"}, now: "v1.34.9", to: "v1.35.4"},
		"one that is past it is silent":  {etcd: []string{"3.6.4", ""}, now: "v1.34.9", to: "v1.35.4"},
		"etcd is elsewhere":              {etcd: []string{"", "", ""}, now: "v1.33.9", to: "v1.34.9"},
		"the hop does not bring it yet":  {etcd: []string{"3.5.21", "3.5.15"}, now: "v1.32.1", to: "v1.33.9"},
		"a patch mends those before it":  {etcd: []string{"3.5.21", "3.5.21"}, now: "v1.33.1", to: "v1.33.13"},
		"a hop before it brings another": {etcd: []string{"3.5.15", "3.5.15"}, now: "v1.32.1", to: "v1.34.9"},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := Fleet{HopPatch: map[string]string{"v1.33": "v1.33.13"}}
			for i, etcd := range tc.etcd {
				fleet.Hosts = append(fleet.Hosts, etcdHost([]string{"cp1", "cp2", "cp3"}[i], tc.now, etcd, tc.to))
			}
			hops, blocked := Hops(fleet)
			if tc.refused == "" {
				assert.Empty(t, blocked)
				moves := slices.DeleteFunc(hops, func(h Hop) bool { return h.Target.ControlPlane == "" })
				require.NotEmpty(t, moves)
				assert.EqualValues(t, tc.to, moves[len(moves)-1].Target.ControlPlane)
				return
			}
			assert.Empty(t, hops, "nothing is touched")
			for i, h := range fleet.Hosts {
				require.NotNil(t, blocked[h.Name], h.Name)
				assert.Equal(t, tc.refused, blocked[h.Name].Reason)
				assert.Equal(t, tc.terminal[i], blocked[h.Name].Terminal, "%s: a person mends the host itself, and its peers wait for that", h.Name)
				for _, named := range tc.names {
					assert.Contains(t, blocked[h.Name].Message, named)
				}
				target := v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: v1alpha1.KubernetesVersion(tc.to)}}
				require.NotNil(t, Allowed(fleet, h, target), "a grant is judged likewise")
			}
		})
	}
}
