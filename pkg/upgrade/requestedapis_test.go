package upgrade

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestARemovedAPIThatAnyAPIServerIsAskedForHoldsTheFirstHopForAll(t *testing.T) {
	asked := v1alpha1.RequestedAPI{Name: "things.v1beta1.example.io", RemovedIn: "v1.37"}
	for name, tc := range map[string]struct {
		api     v1alpha1.RequestedAPI
		edit    func(cp1, cp2 *HostState)
		refused bool
	}{
		"asked for on the second":           {api: asked, refused: true},
		"gone earlier":                      {api: v1alpha1.RequestedAPI{Name: asked.Name, RemovedIn: "v1.36"}, refused: true},
		"goes later":                        {api: v1alpha1.RequestedAPI{Name: asked.Name, RemovedIn: "v1.38"}},
		"a release that nobody understands": {api: v1alpha1.RequestedAPI{Name: asked.Name, RemovedIn: "soon"}},
		"the first has let it pass":         {api: asked, edit: func(cp1, _ *HostState) { cp1.RemovedAPIsPass = true }},
		"the second alone has let it pass":  {api: asked, edit: func(_, cp2 *HostState) { cp2.RemovedAPIsPass = true }, refused: true},
		"another one is there, it is away":  {api: asked, edit: func(_, cp2 *HostState) { *cp2 = etcdHost("cp2", "v1.37.2", "3.6.4", "v1.37.2") }},
		"a patch takes nothing away":        {api: asked, edit: func(cp1, cp2 *HostState) { cp1.Wish.ControlPlane, cp2.Wish.ControlPlane = "v1.36.4", "v1.36.4" }},
	} {
		t.Run(name, func(t *testing.T) {
			cp1, cp2 := etcdHost("cp1", "v1.36.3", "3.6.4", "v1.37.2"), etcdHost("cp2", "v1.36.3", "3.6.4", "v1.37.2")
			cp2.RequestedAPIs = []v1alpha1.RequestedAPI{tc.api}
			if tc.edit != nil {
				tc.edit(&cp1, &cp2)
			}
			fleet := Fleet{Hosts: []HostState{cp1, cp2}}
			target, _, _, blocked := NextTarget(fleet, cp1, cp1.Wish)
			if !tc.refused {
				require.Nil(t, blocked)
				assert.Equal(t, cp1.Wish.ControlPlane, target.ControlPlane)
				return
			}
			require.NotNil(t, blocked)
			assert.Equal(t, FindingRemovedAPI, blocked.Reason)
			assert.Contains(t, blocked.Message, "cp2 for things.v1beta1.example.io (gone from "+tc.api.RemovedIn+" on)")
			require.NotNil(t, Allowed(fleet, cp1, v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: "v1.37.2"}}), "a grant is judged likewise")
		})
	}
}

func TestOnlyAPIsThatAreSaidToGoAreReported(t *testing.T) {
	f := Facts{Control: &ControlFacts{DeprecatedAPIs: []DeprecatedAPIFacts{
		{Version: "v1", Resource: "componentstatuses"},
		{Group: "example.io", Version: "v1beta1", Resource: "things", RemovedRelease: "1.40"},
		{Group: "example.io", Version: "v1beta1", Resource: "things", RemovedRelease: "1.40"},
		{Group: "example.io", Version: "v1beta1", Resource: "flows", Subresource: "status", RemovedRelease: "1.32"},
	}}}
	asked, known := f.RequestedAPIs()
	assert.True(t, known)
	assert.Equal(t, []v1alpha1.RequestedAPI{{Name: "flows/status.v1beta1.example.io", RemovedIn: "v1.32"}, {Name: "things.v1beta1.example.io", RemovedIn: "v1.40"}}, asked)
	for i := range 2 * maxRequestedAPIs {
		f.Control.DeprecatedAPIs = append(f.Control.DeprecatedAPIs, DeprecatedAPIFacts{Version: "v1", Resource: fmt.Sprint("r", i), RemovedRelease: "1.40"})
	}
	asked, _ = f.RequestedAPIs()
	assert.Len(t, asked, maxRequestedAPIs)
	asked, known = (&Facts{}).RequestedAPIs()
	assert.True(t, known, "a host without an API server is asked for nothing")
	assert.Empty(t, asked)
	_, known = (&Facts{Control: &ControlFacts{}, Problems: []Problem{{Field: fieldDeprecatedAPIs, Message: "status 403"}}}).RequestedAPIs()
	assert.False(t, known)
}
