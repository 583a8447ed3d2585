package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/metrics"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache holds the objects of a fleet, all in namespace refit.
type cache struct {
	client.Reader
	b    *fleettest.Builder
	fail error
}

func (c *cache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	o := &c.b.Objects
	switch l := list.(type) {
	case *v1alpha1.MachineList:
		l.Items = o.Machines
	case *v1alpha1.MachineDeploymentList:
		l.Items = o.Deployments
	case *v1alpha1.MachineDisruptionBudgetList:
		l.Items = o.Budgets
	case *v1alpha1.LedgerList:
		l.Items = []v1alpha1.Ledger{{ObjectMeta: metav1.ObjectMeta{Namespace: "refit", Name: "refit"}, Spec: o.Ledger}}
	case *corev1.NodeList:
		l.Items = o.Nodes
	default:
		return fmt.Errorf("unexpected list %T", list)
	}
	return c.fail
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func collectorOf(c *cache, leads <-chan struct{}) *metrics.Collector {
	return metrics.New(metrics.Config{Machines: c, Nodes: c, Leads: leads, Now: func() time.Time { return fleettest.Now }, Log: logr.Discard()})
}

func assertMetrics(t *testing.T, c prometheus.Collector, name, want string) {
	t.Helper()
	assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(want), name))
}

func phase(p v1alpha1.Phase) fleettest.Edit {
	return fleettest.Of(func(m *v1alpha1.Machine) { m.Status.Phase = p })
}

func with(kind string, status metav1.ConditionStatus, reason string) fleettest.Edit {
	return fleettest.Of(func(m *v1alpha1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: m.Generation})
	})
}

// some is a pool of four in the middle of a rollout.
func some() *fleettest.Builder {
	return fleettest.New().
		Deployment("workers", func(d *v1alpha1.MachineDeployment) {
			two := intstr.FromInt32(2)
			d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{MaxUnavailable: &two}}
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "ApplyFailed"}}
		}).
		Budget("racks", "workers", func(s *v1alpha1.MachineDisruptionBudgetSpec) {
			three := intstr.FromInt32(3)
			s.MinAvailable = &three
		}).
		Machine("w1", "workers", v1alpha1.RoleWorker, phase(v1alpha1.PhaseReady), with(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "UpToDate")).
		Machine("w2", "workers", v1alpha1.RoleWorker, phase(v1alpha1.PhaseApplying), fleettest.InSlot(v1alpha1.DisruptionDrain),
			fleettest.Of(func(m *v1alpha1.Machine) {
				m.Status.CertificateEndTime = &metav1.Time{Time: fleettest.Now.Add(100 * time.Second)}
			})).
		Machine("w3", "workers", v1alpha1.RoleWorker, phase(v1alpha1.PhaseWaiting), with(v1alpha1.ConditionWaiting, metav1.ConditionTrue, "BudgetExhausted"),
			with(v1alpha1.ConditionForecast, metav1.ConditionFalse, "PDBOverlap")).
		Machine("w4", "workers", v1alpha1.RoleWorker, with(v1alpha1.ConditionCertificatesExpiring, metav1.ConditionTrue, "ExpiresSoon"),
			fleettest.Of(func(m *v1alpha1.Machine) {
				m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: "DrainBlocked", Failure: v1alpha1.Failure{Reason: "EvictionBlocked"}}
				m.Status.Versions.Kubelet = "v1.37.2"
				m.Status.CertificateEndTime = &metav1.Time{Time: fleettest.Now.Add(time.Hour)}
			}))
}

func inRefit(b *fleettest.Builder) *fleettest.Builder {
	o := &b.Objects
	for i := range o.Machines {
		o.Machines[i].Namespace = "refit"
	}
	for i := range o.Deployments {
		o.Deployments[i].Namespace = "refit"
	}
	for i := range o.Budgets {
		o.Budgets[i].Namespace = "refit"
	}
	return b
}

// series are the samples of a metric without its comments, and without those that are zero.
func series(t *testing.T, c prometheus.Collector, name string) []string {
	t.Helper()
	text, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, name)
	require.NoError(t, err)
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0") {
			out = append(out, strings.TrimPrefix(line, name))
		}
	}
	return out
}

func TestTheFleetIsCountedAsItIsInTheCache(t *testing.T) {
	c := collectorOf(&cache{b: ledgered(inRefit(some()))}, closed())
	for name, want := range map[string][]string{
		"refit_machines": {
			`{machinedeployment="workers",namespace="refit",phase="Applying"} 1`,
			`{machinedeployment="workers",namespace="refit",phase="Pending"} 1`,
			`{machinedeployment="workers",namespace="refit",phase="Ready"} 1`,
			`{machinedeployment="workers",namespace="refit",phase="Waiting"} 1`,
		},
		"refit_machines_up_to_date": {`{machinedeployment="workers",namespace="refit"} 1`},
		"refit_machine_versions": {
			`{component="kubelet",namespace="refit",version="v1.37.1"} 3`,
			`{component="kubelet",namespace="refit",version="v1.37.2"} 1`,
		},
		"refit_machines_waiting":                       {`{namespace="refit",reason="BudgetExhausted"} 1`},
		"refit_machines_certificates_expiring":         {`{namespace="refit",reason="ExpiresSoon"} 1`},
		"refit_certificate_expiry_timestamp_seconds":   {`{machinedeployment="workers",namespace="refit"} 1.9065457e+09`},
		"refit_drains_blocked":                         {`{namespace="refit",reason="EvictionBlocked"} 1`, `{namespace="refit",reason="PDBOverlap"} 1`},
		"refit_slots":                                  {`{namespace="refit",state="Reserved"} 1`},
		"refit_oldest_slot_reserved_timestamp_seconds": {`{namespace="refit"} 1.906545e+09`},
		"refit_stopped":                                nil,
		"refit_rollout_progress_ratio":                 {`{machinedeployment="workers",namespace="refit"} 0.25`},
		"refit_rollout_halted":                         {`{machinedeployment="workers",namespace="refit"} 1`},
		"refit_rollout_paused":                         nil,
		"refit_budget_unavailable_machines": {
			`{kind="MachineDeployment",name="workers",namespace="refit"} 1`,
			`{kind="MachineDisruptionBudget",name="racks",namespace="refit"} 1`,
		},
		"refit_budget_allowed_unavailable_machines": {
			`{kind="MachineDeployment",name="workers",namespace="refit"} 2`,
			`{kind="MachineDisruptionBudget",name="racks",namespace="refit"} 1`,
		},
		"refit_collector_success": {` 1`},
	} {
		assert.Equal(t, want, series(t, c, name), name)
	}
}

// ledgered gives the slots the time at which they were reserved.
func ledgered(b *fleettest.Builder) *fleettest.Builder {
	for i := range b.Objects.Ledger.Slots {
		b.Objects.Ledger.Slots[i].ReservedTime = metav1.NewTime(fleettest.Now.Add(-10 * time.Minute))
	}
	return b
}

func TestOnlyTheOneThatLeadsAnswers(t *testing.T) {
	leads := make(chan struct{})
	c := collectorOf(&cache{b: inRefit(some())}, leads)
	assert.Zero(t, testutil.CollectAndCount(c))
	close(leads)
	assert.NotZero(t, testutil.CollectAndCount(c))
}

func TestACacheThatDoesNotAnswerLeavesOutTheNumbersAndSaysSo(t *testing.T) {
	c := collectorOf(&cache{b: inRefit(some()), fail: errors.New("gone")}, closed())
	assertMetrics(t, c, "refit_collector_success", "# HELP refit_collector_success 1 when all other metrics of Refit could be counted.\n"+
		"# TYPE refit_collector_success gauge\nrefit_collector_success 0\n")
	assert.Equal(t, 1, testutil.CollectAndCount(c))
}

func TestAnOperationIsCountedOnceAndNoneFromBeforeTheLead(t *testing.T) {
	b := inRefit(some())
	c := collectorOf(&cache{b: b}, closed())
	history := func(i int, ids ...string) {
		b.Objects.Machines[i].Status.History = nil
		for _, id := range ids {
			b.Objects.Machines[i].Status.History = append(b.Objects.Machines[i].Status.History, v1alpha1.HistoryEntry{
				ID: id, Type: v1alpha1.OperationUpgrade, State: v1alpha1.OperationSuccessful,
				Phases: []v1alpha1.PhaseDuration{{Name: "Drain", Duration: metav1.Duration{Duration: 30 * time.Second}}, {Name: "Nap", Duration: metav1.Duration{Duration: time.Second}}},
			})
		}
	}
	count := func() []string { return series(t, c, "refit_operations_total") }
	history(0, "g2", "g1")
	assert.Empty(t, count(), "they ended under another leader")
	history(0, "g4", "g3", "g2", "g1")
	history(1, "h1")
	want := []string{`{state="Successful",type="Upgrade"} 3`}
	assert.Equal(t, want, count())
	assert.Equal(t, want, count(), "the same history again")
	history(0, "g9", "g8", "g7", "g6", "g5")
	assert.Equal(t, []string{`{state="Successful",type="Upgrade"} 8`}, count(), "more than a Machine remembers has passed")
	durations := series(t, c, "refit_operation_phase_duration_seconds")
	assert.Contains(t, durations, `_sum{phase="Drain",type="Upgrade"} 240`)
	assert.Contains(t, durations, `_count{phase="other",type="Upgrade"} 8`)
}

func TestHostsThatLieDoNotFillPrometheus(t *testing.T) {
	b := fleettest.New().Deployment("workers")
	for i := range 300 {
		b.Machine(fmt.Sprintf("w%03d", i), "workers", v1alpha1.RoleWorker, fleettest.Of(func(m *v1alpha1.Machine) {
			m.Status.Versions.Kubelet = fmt.Sprintf("v1.0.%d", i)
			m.Status.OS = &v1alpha1.ObservedOS{PrettyName: strings.Repeat("x", 1000), Kernel: "k\xff"}
		}), with(v1alpha1.ConditionCertificatesExpiring, metav1.ConditionTrue, fmt.Sprintf("R%d", i)))
	}
	c := collectorOf(&cache{b: inRefit(b)}, closed())
	versions := series(t, c, "refit_machine_versions")
	assert.Len(t, versions, 33+1+1)
	assert.Contains(t, versions, `{component="kubelet",namespace="refit",version="other"} 268`)
	assert.Contains(t, versions, `{component="os",namespace="refit",version="other"} 300`)
	assert.Len(t, series(t, c, "refit_machines_certificates_expiring"), 33)
}

// The number of series does not grow with the machines.
func TestSeriesGrowWithPoolsAndNotWithMachines(t *testing.T) {
	count := func(n int) int {
		b := fleettest.New().Deployment("workers")
		for i := range n {
			b.Machine(fmt.Sprintf("w%04d", i), "workers", v1alpha1.RoleWorker, phase(v1alpha1.PhaseReady))
		}
		return testutil.CollectAndCount(collectorOf(&cache{b: inRefit(b)}, closed()))
	}
	assert.Equal(t, count(2), count(500))
}

func TestTheNamesFollowTheConventionsOfPrometheus(t *testing.T) {
	problems, err := testutil.CollectAndLint(collectorOf(&cache{b: inRefit(some())}, closed()))
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestEveryMetricIsDocumentedAndNoOther(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	var want, got []string
	for _, d := range metrics.Definitions() {
		labels := "none"
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", d.Name, d.Kind, labels))
	}
	for _, row := range regexp.MustCompile("(?m)^(\\| `refit_[a-z_]+` \\| [a-z]+ \\| [^|]+ \\|) [^|]+ \\|$").FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[1])
	}
	assert.Equal(t, want, got)
	for _, value := range slices.Concat(metrics.Components, []string{"Wait", "Drain", "Apply", "Restart", "Ready"}) {
		assert.Contains(t, string(text), "`"+value+"`")
	}
}

func TestEveryDefinitionIsCollected(t *testing.T) {
	c := collectorOf(&cache{b: inRefit(some())}, closed())
	described := make(chan *prometheus.Desc, 100)
	c.Describe(described)
	close(described)
	var all strings.Builder
	for d := range described {
		all.WriteString(d.String())
	}
	for _, d := range metrics.Definitions() {
		assert.Contains(t, all.String(), `fqName: "`+d.Name+`"`)
	}
}

func BenchmarkCollectOf5000(b *testing.B) {
	fleet := fleettest.New().Deployment("workers")
	for i := range 5000 {
		fleet.Machine(fmt.Sprintf("w%04d", i), "workers", v1alpha1.RoleWorker, phase(v1alpha1.PhaseReady))
	}
	c := collectorOf(&cache{b: inRefit(fleet)}, closed())
	for b.Loop() {
		testutil.CollectAndCount(c)
	}
}
