package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

const unknown = v1alpha1.Unknown

func TestWhatAHostSaysOfItsAPIServer(t *testing.T) {
	problem := func(field string) []Problem { return []Problem{{Field: field, Message: "permission denied"}} }
	etcd := map[string]string{"etcd": "3.6.4-0"}
	for name, tc := range map[string]struct {
		facts    Facts
		sign     APIServerSign
		reported *v1alpha1.ObservedControlPlane
	}{
		"a worker":                                 {Facts{}, NoAPIServer, nil},
		"one that answers":                         {Facts{Control: &ControlFacts{APIServer: "v1.36.3"}}, APIServerOnHost, &v1alpha1.ObservedControlPlane{APIServer: "v1.36.3", ControllerManager: unknown, Scheduler: unknown}},
		"one that is down and has its file":        {Facts{Control: &ControlFacts{Manifests: map[string]string{"kube-apiserver": "v1.36.3"}}}, APIServerOnHost, &v1alpha1.ObservedControlPlane{APIServer: unknown, ControllerManager: unknown, Scheduler: unknown}},
		"one whose image has no tag":               {Facts{Control: &ControlFacts{Manifests: map[string]string{"kube-apiserver": ""}}}, APIServerOnHost, &v1alpha1.ObservedControlPlane{APIServer: unknown, ControllerManager: unknown, Scheduler: unknown}},
		"one that only the kubelet reads of":       {Facts{StaticPods: []StaticPodFacts{{Path: "/srv/pods/api.json", Namespace: "kube-system", Name: "kube-apiserver"}}}, APIServerOnHost, &v1alpha1.ObservedControlPlane{APIServer: unknown, ControllerManager: unknown, Scheduler: unknown}},
		"a proxy to it":                            {Facts{StaticPods: []StaticPodFacts{{Path: "/etc/kubernetes/manifests/p.yaml", Namespace: "kube-system", Name: "kube-apiserver-proxy"}}}, NoAPIServer, nil},
		"the others of a control plane":            {Facts{Control: &ControlFacts{Scheduler: "v1.36.3"}}, APIServerOnHost, &v1alpha1.ObservedControlPlane{APIServer: unknown, ControllerManager: unknown, Scheduler: "v1.36.3"}},
		"etcd alone":                               {Facts{Control: &ControlFacts{Etcd: "3.6.4", Manifests: etcd}}, NoAPIServer, nil},
		"etcd alone, which does not answer":        {Facts{Control: &ControlFacts{Manifests: etcd}}, NoAPIServer, nil},
		"a probe that failed":                      {Facts{Problems: problem("controlPlane")}, APIServerPossible, &v1alpha1.ObservedControlPlane{APIServer: unknown}},
		"a manifest that cannot be read":           {Facts{Control: &ControlFacts{Manifests: etcd}, Problems: problem("controlPlane.manifests")}, APIServerPossible, &v1alpha1.ObservedControlPlane{APIServer: unknown}},
		"static pods that cannot be read":          {Facts{Problems: problem("staticPods")}, APIServerPossible, &v1alpha1.ObservedControlPlane{APIServer: unknown}},
		"a probe of something else":                {Facts{Problems: problem("containers")}, NoAPIServer, nil},
		"a control plane of which is said nothing": {Facts{Control: &ControlFacts{}}, APIServerPossible, &v1alpha1.ObservedControlPlane{APIServer: unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.sign, tc.facts.APIServerSign())
			assert.Equal(t, tc.reported, tc.facts.Versions().ControlPlane)
			m := &v1alpha1.Machine{}
			m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleWorker}
			m.Status.Versions = tc.facts.Versions()
			assert.Equal(t, tc.sign, StateOf(m, nil, nil).APIServer, "what is reported says the same")
			assert.Equal(t, tc.sign, StateOf(m, nil, &tc.facts).APIServer)
		})
	}
}

// Whatever says that a host may have an API server: no kubelet moves while its version is
// not known, and the reason says what to do.
func TestAnAPIServerOfUnknownVersionNeverDropsOut(t *testing.T) {
	label := &NodeState{Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}
	silent := &v1alpha1.ObservedVersions{ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: unknown, ControllerManager: unknown, Scheduler: unknown}}
	for name, tc := range map[string]struct {
		roles    []v1alpha1.Role
		status   *v1alpha1.ObservedVersions
		node     *NodeState
		facts    *Facts
		says     string
		mismatch bool
	}{
		"a role without a status":              {[]v1alpha1.Role{v1alpha1.RoleControlPlane}, nil, nil, nil, "see that its agent runs", false},
		"a label without role and status":      {[]v1alpha1.Role{v1alpha1.RoleWorker}, nil, label, nil, "add ControlPlane to spec.roles", true},
		"a label next to a status of a worker": {[]v1alpha1.Role{v1alpha1.RoleWorker}, &v1alpha1.ObservedVersions{Kubelet: "v1.36.3"}, label, nil, "take the label off the Node", true},
		"a label next to the role":             {[]v1alpha1.Role{v1alpha1.RoleControlPlane}, nil, label, nil, "see that its agent runs", false},
		"a status in which nothing is known":   {[]v1alpha1.Role{v1alpha1.RoleWorker}, silent, nil, nil, "add ControlPlane to spec.roles", true},
		"a status of a host with etcd":         {[]v1alpha1.Role{v1alpha1.RoleEtcd}, silent, nil, nil, "add ControlPlane to spec.roles", true},
		"a manifest whose API server is down":  {[]v1alpha1.Role{v1alpha1.RoleWorker}, nil, nil, &Facts{Control: &ControlFacts{Manifests: map[string]string{"kube-apiserver": "v1.36.3"}}}, "see that it answers", true},
		"a probe that failed":                  {[]v1alpha1.Role{v1alpha1.RoleWorker}, nil, nil, &Facts{Problems: []Problem{{Field: "controlPlane", Message: "permission denied"}}}, "refit-agent facts has it under problems", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Machine{}
			m.Name, m.Spec.Roles, m.Status.Versions = "x", tc.roles, tc.status
			if tc.facts != nil {
				m.Status.Versions = tc.facts.Versions()
			}
			x := StateOf(m, tc.node, tc.facts)
			cp, w := at("cp1", "v1.37.2", "v1.37.2", wishBoth("v1.37.2")), at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
			fleet := Fleet{Hosts: []HostState{cp, x, w}}
			_, _, _, blocked := NextTarget(fleet, w, w.Wish)
			refused := requireBlocked(t, blocked, ReasonVersionUnknown)
			assert.Contains(t, refused.Message, tc.says)
			assert.False(t, refused.Terminal, "it passes when the version is known")
			requireBlocked(t, Allowed(fleet, w, v1alpha1.Target{Versions: w.Wish}), ReasonVersionUnknown)
			_, _, _, blocked = NextTarget(fleet, x, x.Wish)
			if !tc.mismatch {
				assert.Nil(t, x.RoleMismatch())
				return
			}
			assert.Contains(t, requireBlocked(t, blocked, ReasonRoleMismatch).Message, "spec.roles")
		})
	}
	t.Run("a worker whose facts say so counts for nothing", func(t *testing.T) {
		m := &v1alpha1.Machine{}
		m.Name, m.Spec.Roles, m.Status.Versions = "x", []v1alpha1.Role{v1alpha1.RoleWorker}, silent
		x := StateOf(m, &NodeState{Kubelet: "v1.36.3"}, &Facts{Kubelet: &ComponentFacts{Running: "v1.36.3", Active: true}})
		x.Versions.Kubelet = "v1.36.3"
		cp, w := at("cp1", "v1.37.2", "v1.37.2", wishBoth("v1.37.2")), at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
		target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp, x, w}}, w, w.Wish)
		require.Nil(t, blocked)
		assert.Equal(t, w.Wish, target.Versions)
	})
}

func TestAHostIsToldOfItsMissingRoleThoughItsAPIServerIsDown(t *testing.T) {
	for name, facts := range map[string]func(*Facts){
		"by its manifest": func(f *Facts) {
			f.Control = &ControlFacts{Manifests: map[string]string{"kube-apiserver": "v1.36.3"}}
		},
		"by what the kubelet reads": func(f *Facts) {
			f.StaticPods = []StaticPodFacts{{Path: "/srv/pods/api.json", Namespace: "kube-system", Name: "kube-apiserver"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := kubeletHop("v1.36.3", "v1.36.4")
			facts(&in.Facts)
			_, err := NewPlan(in)
			requireBlocked(t, err, ReasonRoleMismatch)
		})
	}
	t.Run("what could not be looked at is no contradiction", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Facts.Problems = []Problem{{Field: "controlPlane", Message: "permission denied"}}
		assert.NotEmpty(t, plan(t, in).Steps)
		in.Spec = controlPlane()
		_, err := NewPlan(in)
		assert.False(t, requireBlocked(t, err, ReasonVersionUnknown).Terminal)
		assert.Empty(t, RoleContradiction(in.Spec.Roles, &in.Facts))
		in.Facts.Problems = nil
		assert.NotEmpty(t, RoleContradiction(in.Spec.Roles, &in.Facts))
		in.Facts.Control = &ControlFacts{Etcd: "3.6.4", Manifests: map[string]string{"etcd": "3.6.4-0"}}
		assert.NotEmpty(t, RoleContradiction(in.Spec.Roles, &in.Facts), "etcd alone is no control plane")
	})
}
