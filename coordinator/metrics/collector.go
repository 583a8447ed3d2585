package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long the caches may take; they answer from memory once they are filled.
const patience = 5 * time.Second

// Collector counts the fleet when it is asked. Of several coordinators only the one that
// leads answers, so that a sum over them is right.
type Collector struct {
	machines, nodes client.Reader
	leads           <-chan struct{}
	now             func() time.Time
	log             logr.Logger
	descs           map[string]*prometheus.Desc
	ended           *ended
}

// Config of a Collector. All fields are needed.
type Config struct {
	// Machines and Nodes read from the caches of the two clusters.
	Machines, Nodes client.Reader
	// Leads is closed once this coordinator leads.
	Leads <-chan struct{}
	Now   func() time.Time
	Log   logr.Logger
}

// New makes a Collector.
func New(c Config) *Collector {
	out := &Collector{machines: c.Machines, nodes: c.Nodes, leads: c.Leads, now: c.Now, log: c.Log, descs: map[string]*prometheus.Desc{}}
	for _, d := range Definitions() {
		if d.Kind != Histogram && d.Kind != Counter {
			out.descs[d.Name] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
		}
	}
	out.ended = newEnded()
	return out
}

// Describe is part of prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
	c.ended.describe(to)
}

// Collect is part of prometheus.Collector. What cannot be read leaves out the numbers, and
// says so; the other metrics of the process are served all the same.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.leads:
	default:
		return
	}
	ctx, end := context.WithTimeout(context.Background(), patience)
	defer end()
	namespaces, err := c.read(ctx)
	if err != nil {
		c.log.Error(err, "Cannot count the fleet for the metrics")
		c.emit(to, collectorSucceeded, 0)
		return
	}
	for name, f := range namespaces {
		s := &sample{c: c, to: to, namespace: name, fleet: f}
		s.machines()
		s.reasons()
		s.versions()
		s.rollouts()
		s.budgets()
		s.slots()
	}
	c.ended.look(namespaces)
	c.ended.collect(to)
	c.emit(to, collectorSucceeded, 1)
}

func (c *Collector) emit(to chan<- prometheus.Metric, name string, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, value, labels...)
}

// reading of one namespace.
type reading struct {
	*fleet.Fleet
	deployments []v1alpha1.MachineDeployment
	ledger      v1alpha1.LedgerSpec
}

// read lists everything once. Nothing of it is changed, so that nothing has to be copied.
func (c *Collector) read(ctx context.Context) (map[string]*reading, error) {
	machines, deployments := &v1alpha1.MachineList{}, &v1alpha1.MachineDeploymentList{}
	budgets, ledgers, nodes := &v1alpha1.MachineDisruptionBudgetList{}, &v1alpha1.LedgerList{}, &corev1.NodeList{}
	for _, list := range []client.ObjectList{machines, deployments, budgets, ledgers} {
		if err := c.machines.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing for the metrics: %w", err)
		}
	}
	if err := c.nodes.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes for the metrics: %w", err)
	}
	objects := map[string]*fleet.Objects{}
	of := func(namespace string) *fleet.Objects {
		if objects[namespace] == nil {
			objects[namespace] = &fleet.Objects{Nodes: nodes.Items, Now: c.now()}
		}
		return objects[namespace]
	}
	for i := range machines.Items {
		o := of(machines.Items[i].Namespace)
		o.Machines = append(o.Machines, machines.Items[i])
	}
	for i := range deployments.Items {
		o := of(deployments.Items[i].Namespace)
		o.Deployments = append(o.Deployments, deployments.Items[i])
	}
	for i := range budgets.Items {
		o := of(budgets.Items[i].Namespace)
		o.Budgets = append(o.Budgets, budgets.Items[i])
	}
	for i := range ledgers.Items {
		of(ledgers.Items[i].Namespace).Ledger = ledgers.Items[i].Spec
	}
	return built(objects)
}

func built(objects map[string]*fleet.Objects) (map[string]*reading, error) {
	out := make(map[string]*reading, len(objects))
	for namespace, o := range objects {
		f, err := fleet.Build(*o)
		if err != nil {
			return nil, fmt.Errorf("joining the objects of namespace %s for the metrics: %w", namespace, err)
		}
		out[namespace] = &reading{f, o.Deployments, o.Ledger}
	}
	return out, nil
}
