package report_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestPendingSecurityUpdatesAreACondition(t *testing.T) {
	f := facts()
	f.Packages.Manager = "apt"
	newer := []upgrade.Candidate{{Name: "openssl", From: "3.0.15-1", Version: "3.0.16-1"}, {Name: "bash", From: "5", Version: "6", Held: true}}
	for name, tc := range map[string]struct {
		known  *report.Security
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"nobody has looked":     {nil, metav1.ConditionUnknown, "NotLookedYet", "within the hour"},
		"the first look failed": {&report.Security{Failure: errors.New("no route")}, metav1.ConditionUnknown, "LookFailed", "no route"},
		"a later look failed":   {&report.Security{Known: true, Updates: newer, Failure: errors.New("no route")}, metav1.ConditionTrue, "UpdatesPending", "openssl"},
		"one is pending":        {&report.Security{Known: true, Updates: newer}, metav1.ConditionTrue, "UpdatesPending", "1 security updates are pending: openssl 3.0.15-1 to 3.0.16-1; on hold and left alone: bash 5 to 6"},
		"only held ones":        {&report.Security{Known: true, Updates: newer[1:]}, metav1.ConditionFalse, "NonePending", "bash"},
		"it was installed":      {&report.Security{Known: true, Updates: []upgrade.Candidate{{Name: "openssl", From: "3.0.14-1", Version: "3.0.15-1"}}}, metav1.ConditionFalse, "NonePending", "No security update"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := packages()
			spec.OS.SecurityUpdates = v1alpha1.SecurityUpdatesApply
			s := report.State{Facts: f, Spec: spec, Security: tc.known, Now: now}
			c := meta.FindStatusCondition(report.Status(s).Conditions, v1alpha1.ConditionSecurityUpdatesPending)
			require.NotNil(t, c)
			assert.Equal(t, tc.status, c.Status)
			assert.Equal(t, tc.reason, c.Reason)
			assert.Contains(t, c.Message, tc.says)
			assert.Contains(t, v1alpha1.AgentConditions, c.Type, "its writer is known to the policies")

			s.Base.Conditions, s.Spec.OS = []metav1.Condition{*c}, &v1alpha1.OSSpec{}
			assert.Nil(t, meta.FindStatusCondition(report.Status(s).Conditions, v1alpha1.ConditionSecurityUpdatesPending), "asked for no more, said no more")
		})
	}
}
