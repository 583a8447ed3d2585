package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/checks"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// checker answers the checks of the pools. Expressions are evaluated as the coordinator
// evaluates them; what asks Prometheus is answered as the scenario says. An answer is there
// at once, and as in a cluster it is asked for again only after a while.
type checker struct {
	e       *Engine
	book    *checks.Book
	news    chan struct{}   // the book has another answer
	passes  map[string]bool // by the check's name, of those that ask Prometheus
	asked   map[promKey]fleet.CheckOutcome
	assumed map[promKey]bool // to pass, and that was told
}

type promKey struct{ pool, check, url, query string }

func newChecker(e *Engine, api *api, cluster kube) *checker {
	c := &checker{
		e: e, news: make(chan struct{}, 1), passes: maps.Clone(e.spec.Checks),
		asked: map[promKey]fleet.CheckOutcome{}, assumed: map[promKey]bool{},
	}
	if c.passes == nil {
		c.passes = map[string]bool{}
	}
	c.book = &checks.Book{
		Base: context.Background(), Nodes: api, Workload: cluster, Now: func() time.Time { return e.now },
		Changed: func(string) {
			select {
			case c.news <- struct{}{}:
			default: // it is told already, and the answers are all looked at then
			}
		},
	}
	return c
}

func promKeyOf(q checks.Question) promKey {
	return promKey{q.Machine.Pool.Name, q.Check.Name, q.Check.Prometheus.URL, q.Check.Prometheus.Query}
}

// Known implements rollout.Checker.
func (c *checker) Known(q checks.Question) (fleet.CheckOutcome, bool) {
	if q.Check.Prometheus == nil {
		return c.book.Known(q)
	}
	o, known := c.asked[promKeyOf(q)]
	return o, known
}

// Ask implements rollout.Checker. The answers are there when it returns: the clock stands still meanwhile.
func (c *checker) Ask(all []checks.Question) {
	pools, expressions := []*fleet.Pool{}, map[*fleet.Pool][]checks.Question{}
	for _, q := range all {
		if o, known := c.Known(q); known && (o.State == fleet.CheckInvalid || c.e.now.Sub(o.At) < checks.Every) {
			continue
		}
		c.e.todo.rollout = true // it is told of the answer
		if q.Check.Prometheus != nil {
			c.asked[promKeyOf(q)] = c.prometheus(q)
			continue
		}
		if expressions[q.Machine.Pool] == nil {
			pools = append(pools, q.Machine.Pool)
		}
		expressions[q.Machine.Pool] = append(expressions[q.Machine.Pool], q)
	}
	for _, pool := range pools { // one after another: they read the same world
		c.evaluate(expressions[pool])
	}
}

// evaluate waits until all are answered.
func (c *checker) evaluate(all []checks.Question) {
	c.book.Ask(all)
	for !c.answered(all) {
		<-c.news
	}
}

func (c *checker) answered(all []checks.Question) bool {
	for _, q := range all {
		if o, known := c.book.Known(q); !known || !o.At.Equal(c.e.now) {
			return false
		}
	}
	return true
}

// prometheus is the scenario's answer. A check that it says nothing of passes.
func (c *checker) prometheus(q checks.Question) fleet.CheckOutcome {
	key := promKeyOf(q)
	passes, said := c.passes[q.Check.Name]
	switch {
	case said && !passes:
		return fleet.CheckOutcome{State: fleet.CheckFailed, Message: "the scenario says so", At: c.e.now}
	case !said && !c.assumed[key]:
		c.assumed[key] = true
		c.e.note(ActionCheck, "", "Assumed", fmt.Sprintf("check %q of MachineDeployment %s asks Prometheus, which no simulation does: it passes; spec.checks of the Simulation or an event SetCheck says otherwise", q.Check.Name, key.pool))
	}
	return fleet.CheckOutcome{State: fleet.CheckPassed, At: c.e.now}
}

// set gives a check another answer. It is seen when the check is asked for the next time.
func (c *checker) set(name string, passes bool) {
	c.passes[name] = passes
	c.e.wakes.fruitful(c.e.now)
	c.e.todo.rollout = true
}

// checkNames are the checks of the scenario, also those that an event brings; true: it asks Prometheus.
func (e *Engine) checkNames() map[string]bool {
	out := map[string]bool{}
	add := func(d *v1alpha1.MachineDeployment) {
		if d.Spec.Strategy == nil || d.Spec.Strategy.RollingUpdate == nil {
			return
		}
		for _, c := range d.Spec.Strategy.RollingUpdate.Checks {
			out[c.Name] = out[c.Name] || c.Prometheus != nil
		}
	}
	for _, d := range e.world.deployments {
		add(d)
	}
	for _, ev := range e.spec.Events {
		if ev.Patch == nil {
			continue
		}
		var d v1alpha1.MachineDeployment
		if json.Unmarshal(ev.Patch.Raw, &d) == nil { // what it is instead is told where it is applied
			add(&d)
		}
	}
	return out
}

// answerable says why the scenario cannot give the answer of that check; "" when it can.
func (e *Engine) answerable(name string) string {
	switch prometheus, there := e.checkNames()[name]; {
	case !there:
		return fmt.Sprintf("there is no check %q in the scenario: name one of a MachineDeployment's spec.strategy.rollingUpdate.checks that asks Prometheus", name)
	case !prometheus:
		return fmt.Sprintf("check %q is an expression, which is evaluated: only what asks Prometheus is given an answer", name)
	}
	return ""
}

func (e *Engine) checkAnswers() error {
	for _, name := range slices.Sorted(maps.Keys(e.spec.Checks)) {
		if why := e.answerable(name); why != "" {
			return &InputError{Field: "spec.checks." + name, Message: why}
		}
	}
	return nil
}
