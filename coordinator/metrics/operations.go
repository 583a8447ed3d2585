package metrics

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// buckets reach from a restart of a kubelet to a drain that waits for hours.
var buckets = []float64{1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400}

// ended counts operations that have ended, by what Machines remember of them. The first look
// counts nothing: what they remember then has ended under another leader.
type ended struct {
	mu        sync.Mutex
	begun     bool
	last      map[types.UID]string // of each Machine, the newest operation that was counted
	count     *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newEnded() *ended {
	e := &ended{last: map[types.UID]string{}}
	for _, d := range Definitions() {
		switch d.Name {
		case operations:
			e.count = prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
		case operationDuration:
			e.durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: buckets}, d.Labels)
		}
	}
	return e
}

func (e *ended) describe(to chan<- *prometheus.Desc) {
	e.count.Describe(to)
	e.durations.Describe(to)
}

func (e *ended) collect(to chan<- prometheus.Metric) {
	e.count.Collect(to)
	e.durations.Collect(to)
}

// look counts what has been added since the last look. A Machine remembers five operations:
// of more between two looks the oldest are not counted.
func (e *ended) look(namespaces map[string]*reading) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := make(map[types.UID]string, len(e.last))
	for _, f := range namespaces {
		for _, m := range f.Machines {
			if e.begun {
				e.add(m.Status.History, e.last[m.UID])
			}
			if len(m.Status.History) > 0 {
				last[m.UID] = m.Status.History[0].ID
			}
		}
	}
	e.last, e.begun = last, true
}

// add counts the entries, newest first, up to the one that was counted last.
func (e *ended) add(history []v1alpha1.HistoryEntry, before string) {
	for i := range history {
		entry := &history[i]
		if entry.ID == before {
			return
		}
		e.count.WithLabelValues(oneOf(operationTypes, entry.Type), oneOf(states, entry.State)).Inc()
		for _, p := range entry.Phases {
			e.durations.WithLabelValues(oneOf(operationTypes, entry.Type), oneOf(phases, p.Name)).Observe(p.Duration.Seconds())
		}
	}
}

var (
	operationTypes = []v1alpha1.OperationType{
		v1alpha1.OperationUpgrade, v1alpha1.OperationReconfigure, v1alpha1.OperationReboot, v1alpha1.OperationRollback,
		v1alpha1.OperationRepair, v1alpha1.OperationRenewCertificates,
	}
	states = []v1alpha1.OperationState{v1alpha1.OperationSuccessful, v1alpha1.OperationFailed}
	phases = []string{"Wait", "Drain", "Apply", "Restart", "Ready"}
)

func oneOf[T ~string](known []T, value T) string {
	if slices.Contains(known, value) {
		return string(value)
	}
	return other
}
