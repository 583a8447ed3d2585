package verbs

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestOnlyAControlPlaneAndEtcdCanNeverGoBack(t *testing.T) {
	refusal := &upgrade.Blocked{Reason: upgrade.ReasonDowngradeRefused, Message: "no"}
	plane := func(v string) *v1alpha1.ObservedVersions {
		return &v1alpha1.ObservedVersions{Kubelet: v, ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: v}}
	}
	for name, tc := range map[string]struct {
		from *v1alpha1.ObservedVersions
		to   *v1alpha1.Versions
		why  string
	}{
		"a control plane":             {plane("v1.37.2"), &v1alpha1.Versions{ControlPlane: "v1.36.3"}, "no"},
		"a control plane that waits":  {plane("v1.36.3"), &v1alpha1.Versions{ControlPlane: "v1.37.2"}, ""},
		"a kubelet":                   {plane("v1.37.2"), &v1alpha1.Versions{Kubelet: "v1.36.3"}, ""},
		"etcd":                        {&v1alpha1.ObservedVersions{Etcd: "3.6.4"}, &v1alpha1.Versions{Etcd: "v3.5.24"}, "etcd runs 3.6.4 and would go back to v3.5.24"},
		"an etcd that stays":          {&v1alpha1.ObservedVersions{Etcd: "3.6.4"}, &v1alpha1.Versions{Etcd: "v3.6.4"}, ""},
		"a host that has not spoken":  {nil, &v1alpha1.Versions{ControlPlane: "v1.36.3"}, ""},
		"a template without versions": {plane("v1.37.2"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			why := goesBack(preview.MachinePlan{From: tc.from, To: tc.to, Refusal: refusal})
			if tc.why == "" {
				assert.Empty(t, why)
				return
			}
			assert.Contains(t, why, tc.why)
		})
	}
}

func TestOperationsAreTold(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	var out strings.Builder
	require.NoError(t, PrintOperations(&out, []v1alpha1.HistoryEntry{
		{ID: "g2", Type: v1alpha1.OperationUpgrade, State: v1alpha1.OperationFailed, Reason: "HookFailed", StartTime: at(70 * time.Minute), EndTime: at(time.Hour),
			Target: &v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: "v1.37.2"}, OS: true},
			Phases: []v1alpha1.PhaseDuration{{Name: "Drain", Duration: metav1.Duration{Duration: 61234 * time.Millisecond}}, {Name: "Apply", Duration: metav1.Duration{Duration: 3 * time.Millisecond}}}},
		{ID: "g1", Type: v1alpha1.OperationRepair, State: v1alpha1.OperationSuccessful},
	}, now))
	assert.Equal(t, `ENDED     TYPE      OUTCOME               FROM   TO                              TOOK    PHASES                   GRANT
60m ago   Upgrade   Failed (HookFailed)   -      packages and settings,v1.37.2   10m0s   Drain=1m1.2s Apply=3ms   g2
-         Repair    Successful            -      -                               -       -                        g1
`, out.String())
}
