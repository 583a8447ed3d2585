package coordinator

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func rolling(edit func(*v1alpha1.RollingUpdate)) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{}}
		edit(d.Spec.Strategy.RollingUpdate)
	}
}

func always(schedule, zone string) v1alpha1.Window {
	return v1alpha1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: 48 * time.Hour}, TimeZone: zone}
}

func TestAPoolIsWorkedOnInItsWindowsOnly(t *testing.T) {
	w := fleetOfThree(t)
	far := time.Now().AddDate(0, 6, 0)
	closed := v1alpha1.Window{Schedule: fmt.Sprintf("0 3 1 %d *", far.Month()), Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Europe/Berlin"}
	w.pool("workers", workerAt(newK8s), rolling(func(r *v1alpha1.RollingUpdate) { r.Windows = []v1alpha1.Window{closed} }))
	w.start()
	w.until("w1 waits for the opening", func() bool { return w.condition("w1", v1alpha1.ConditionWaiting).Reason == "OutsideWindow" })
	assert.Regexp(t, `the next opens at \d{4}-\d\d-01T03:00:00\+0[12]:00 \(Europe/Berlin\)`, w.condition("w1", v1alpha1.ConditionWaiting).Message)

	w.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.Windows = []v1alpha1.Window{always("0 0 * * *", "Europe/Atlantis")}
	})
	w.until("the pool says that its zone is not known", func() bool {
		return w.deploymentCondition("workers", v1alpha1.ConditionProgressing).Reason == "WindowInvalid"
	})
	assert.Empty(t, w.ledger().Slots)

	w.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.Windows = []v1alpha1.Window{always("0 0 * * *", "Europe/Berlin")}
	})
	w.untilUpToDate("w1", "w2", "w3")
}

func TestTheCanaryGoesAloneAndChecksStandBeforeEachGrant(t *testing.T) {
	var fine atomic.Bool
	prometheus := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		value := "0"
		if fine.Load() {
			value = "1"
		}
		_, _ = fmt.Fprintf(rw, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, value)
	}))
	defer prometheus.Close()
	w := fleetOfThree(t)
	watcher := w.watch()
	w.pool("workers", workerAt(newK8s), rolling(func(r *v1alpha1.RollingUpdate) {
		three := intstr.FromInt32(3)
		r.MaxUnavailable, r.Canary = &three, &v1alpha1.Canary{Count: 1}
		r.Checks = []v1alpha1.Check{
			{Name: "cluster", CEL: `machines.exists(m, m.metadata.name == machine.metadata.name) && node.metadata.name == machine.metadata.name && nodes.size() == 3 && pods.size() >= 0`},
			{Name: "errors", Prometheus: &v1alpha1.PrometheusCheck{URL: prometheus.URL, Query: "errors == bool 0"}},
		}
	}))
	w.start()
	w.until("the check holds the canary", func() bool { return w.condition("w1", v1alpha1.ConditionWaiting).Reason == "CheckFailed" })
	assert.Contains(t, w.condition("w1", v1alpha1.ConditionWaiting).Message, `check "errors"`)
	w.until("the others wait for the canary", func() bool { return w.condition("w3", v1alpha1.ConditionWaiting).Reason == "CanaryPending" })
	assert.Empty(t, w.ledger().Slots)

	fine.Store(true)
	w.untilUpToDate("w1")
	fine.Store(false)
	w.until("the check holds the others", func() bool {
		return w.condition("w2", v1alpha1.ConditionWaiting).Reason == "CheckFailed" && w.condition("w3", v1alpha1.ConditionWaiting).Reason == "CheckFailed"
	})
	fine.Store(true)
	w.untilUpToDate("w1", "w2", "w3")
	watcher.end()
	assert.Equal(t, "w1", watcher.grantOrder[0])
}

func TestByHandOnlyTheMachineGoesThatIsNamed(t *testing.T) {
	w := fleetOfThree(t)
	w.pool("workers", workerAt(newK8s), func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyManual}
	})
	w.start()
	w.until("w2 waits to be named", func() bool { return w.condition("w2", v1alpha1.ConditionWaiting).Reason == "AwaitingNext" })
	w.annotate("w2", v1alpha1.AnnotationNext, fmt.Sprint(w.machine("w2").Generation))
	w.untilUpToDate("w2")
	assert.Empty(t, w.hosts["w1"].RanUnder())
	assert.Empty(t, w.hosts["w3"].RanUnder())
}
