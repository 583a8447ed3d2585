package report_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestAPIsThatClientsAskForAreReportedUntilTheyAreKnownNotTo(t *testing.T) {
	base := v1alpha1.MachineStatus{RequestedAPIs: []v1alpha1.RequestedAPI{{Name: "a.v1", RemovedIn: "v1.37"}}}
	asked := []upgrade.DeprecatedAPIFacts{{Version: "v1", Resource: "b", RemovedRelease: "1.38"}}
	for name, tc := range map[string]struct {
		facts *upgrade.Facts
		other bool
		want  []v1alpha1.RequestedAPI
	}{
		"before the first probe":       {want: base.RequestedAPIs},
		"of another host of this name": {other: true},
		"others are asked for":         {facts: &upgrade.Facts{Control: &upgrade.ControlFacts{DeprecatedAPIs: asked}}, want: []v1alpha1.RequestedAPI{{Name: "b.v1", RemovedIn: "v1.38"}}},
		"none is asked for":            {facts: &upgrade.Facts{Control: &upgrade.ControlFacts{}}},
		"it cannot be asked":           {facts: &upgrade.Facts{Control: &upgrade.ControlFacts{}, Problems: []upgrade.Problem{{Field: "controlPlane.deprecatedAPIs"}}}, want: base.RequestedAPIs},
	} {
		t.Run(name, func(t *testing.T) {
			got := report.Status(report.State{Base: base, Facts: tc.facts, NewHost: tc.other})
			assert.Equal(t, tc.want, got.RequestedAPIs)
			assert.Equal(t, report.News, report.Compare(v1alpha1.MachineStatus{}, v1alpha1.MachineStatus{RequestedAPIs: base.RequestedAPIs}), "somebody waits for it")
		})
	}
}
