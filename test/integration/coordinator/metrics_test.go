package coordinator

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scrape is what Prometheus would get; "" while nobody answers.
func (w *world) scrape() string {
	answer, err := http.Get("http://" + w.metrics + "/metrics")
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return "\n" + string(text)
}

func TestPrometheusSeesARolloutFromTheCoordinatorThatLeads(t *testing.T) {
	w := newWorld(t)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.metrics = port.Addr().String()
	require.NoError(t, port.Close())
	w.host("w1", "workers", v1alpha1.RoleWorker)
	w.host("w2", "workers", v1alpha1.RoleWorker)
	w.host("cp1", "control-plane", v1alpha1.RoleControlPlane)
	w.pool("control-plane", planeAt(newK8s))
	w.pool("workers", workerAt(oldK8s))
	w.hosts["cp1"].set(func(h *host) { h.Hold = true })
	w.start()
	w.untilUpToDate("w1", "w2")
	has := func(series string) bool { return strings.Contains(w.scrape(), "\n"+series+"\n") }
	w.until("the fleet is counted", func() bool {
		return has(`refit_rollout_progress_ratio{machinedeployment="workers",namespace="refit"} 1`) &&
			has(`refit_machine_versions{component="kubelet",namespace="refit",version="`+oldK8s+`"} 3`) &&
			has(`refit_machines_waiting{namespace="refit",reason="Held"} 1`) && has("refit_collector_success 1")
	})
	assert.Contains(t, w.scrape(), "\ncontroller_runtime_reconcile_total{", "beside those of the controllers")

	w.hosts["cp1"].set(func(h *host) { h.Hold = false })
	w.untilUpToDate("cp1")
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Versions.Kubelet = newK8s })
	w.untilUpToDate("w1", "w2")
	w.until("the rollout is counted", func() bool {
		return has(`refit_operations_total{state="Successful",type="Upgrade"} 3`) &&
			has(`refit_machine_versions{component="kubelet",namespace="refit",version="`+newK8s+`"} 3`)
	})
	text := w.scrape()
	for _, phase := range []string{"Wait", "Drain", "Apply", "Ready"} {
		assert.Contains(t, text, fmt.Sprintf("\nrefit_operation_phase_duration_seconds_count{phase=%q,type=\"Upgrade\"} ", phase))
	}
	assert.Contains(t, text, "\nrefit_budget_allowed_unavailable_machines{kind=\"MachineDeployment\",name=\"workers\",namespace=\"refit\"} 1\n")
}
