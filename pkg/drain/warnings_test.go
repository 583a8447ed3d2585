package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-dev/refit/pkg/drain"
)

func TestAForecastWarnsOfPodsThatMayEndAfterTheDrainsTimeout(t *testing.T) {
	endsIn := func(left time.Duration) podOption {
		return func(p *corev1.Pod) {
			at := metav1.NewTime(time.Now().Add(left))
			p.DeletionTimestamp, p.Finalizers = &at, []string{"test/holds"}
		}
	}
	hour := drain.Options{Timeout: time.Hour}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		opts    drain.Options
		says    string // of pod "a"
	}{
		"a grace beyond it": {objects: []runtime.Object{pod("a", withGrace(7200))}, opts: hour,
			says: "may take 2h0m0s to end (terminationGracePeriodSeconds), which is more than the drain's timeout of 1h0m0s: give the drain more time"},
		"a grace within it":         {objects: []runtime.Object{pod("a", withGrace(3600))}, opts: hour},
		"the timeout that is unset": {objects: []runtime.Object{pod("a", withGrace(1801))}, says: "more than the drain's timeout of 30m0s"},
		"a grace within it, after others": {objects: []runtime.Object{pod("a", withGrace(3000), withOrder("1")), pod("b", withGrace(600)), pod("c", withGrace(601))}, opts: hour,
			says: "may take 50m0s to end (terminationGracePeriodSeconds), and what goes before it 10m1s, which is more than the drain's timeout of 1h0m0s"},
		"beside others of its order": {objects: []runtime.Object{pod("a", withGrace(3000)), pod("b", withGrace(601))}, opts: hour},
		"after load balancers":       {objects: []runtime.Object{pod("a", withGrace(3000))}, opts: drain.Options{Timeout: time.Hour, LoadBalancerDelay: 11 * time.Minute}, says: "and what goes before it 11m0s"},
		"where what is left is deleted, and waited for": {objects: []runtime.Object{pod("a", withGrace(7200))},
			opts: drain.Options{Timeout: time.Hour, OnTimeout: drain.ActionDelete}},
		"one that is leaving already":           {objects: []runtime.Object{pod("a", endsIn(2*time.Hour))}, opts: hour, says: "to end, which is beyond the drain's timeout of 1h0m0s"},
		"one that is leaving already, and soon": {objects: []runtime.Object{pod("a", withGrace(7200), endsIn(time.Minute))}, opts: hour},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := drain.New(newCluster(t, tc.objects...), tc.opts).Forecast(t.Context(), node)
			require.NoError(t, err)
			for _, p := range f.Pods {
				if p.Name != "a" || tc.says == "" {
					assert.Empty(t, p.Warning, p.Name)
					continue
				}
				assert.Contains(t, p.Warning, tc.says)
				assert.Contains(t, f.Message, "warning: shop/a: "+p.Warning)
				assert.NotEqual(t, drain.OutlookNever, f.Outlook, "it may end sooner")
			}
		})
	}
}
