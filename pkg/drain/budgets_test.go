package drain_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/pkg/drain"
)

func TestABlockedDrainNamesPodBudgetAndSinceWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		hint   string
	}{
		"one that can clear": {func(*policyv1.PodDisruptionBudget) {}, "clears when other pods become ready"},
		"one that never can": {func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 2 }, "can never allow one"},
		"one not seen yet":   {func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }, "has not seen its latest change"},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget("web", "a", 0, 1)
			tc.change(b)
			c := newCluster(t, pod("a"), pod("b"), b)
			c.always["a"] = budgetError("web", 0)
			before := time.Now()
			result, err := c.drain(t, drain.Options{Timeout: 2 * time.Second})
			blocked := requireBlocked(t, err)
			assert.Equal(t, drain.ReasonEvictionBlocked, blocked.Reason)
			assert.Equal(t, name == "one that never can", blocked.Permanent)
			require.Len(t, blocked.Pods, 1)
			assert.Equal(t, []string{"web"}, blocked.Pods[0].PDBs)
			assert.WithinDuration(t, before, blocked.Pods[0].Since, 1500*time.Millisecond, "retries do not move the time since when")
			assert.Contains(t, blocked.Message, "shop/a")
			assert.Contains(t, blocked.Message, "budget web allows 0 disruptions")
			assert.Contains(t, blocked.Message, tc.hint)
			assert.Equal(t, 1, result.Evicted, "the other pod left")
			assert.Empty(t, c.deletes)
		})
	}
}

func TestAPodThatABudgetCanNeverLetGoIsNamedAsSuchFromTheFirstRefusalOn(t *testing.T) {
	b := budget("web", "a", 0, 1)
	b.Status.DesiredHealthy = 2
	c := newCluster(t, pod("a"), b)
	c.always["a"] = budgetError("web", 0)
	told := make(chan drain.Event, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = drain.New(c, drain.Options{Progress: func(e drain.Event) { told <- e }}).Drain(ctx, node)
	}()
	select {
	case e := <-told:
		assert.Equal(t, drain.EventBlocked, e.Kind)
		assert.Contains(t, e.Message, "it can never allow one; add replicas, or let it allow one")
		assert.False(t, e.Since.IsZero())
		assert.True(t, e.Lasting)
	case <-time.After(10 * time.Second):
		require.Fail(t, "nobody was told")
	}
	b.Status.ExpectedPods, b.ResourceVersion = 3, "2"
	require.Eventually(t, func() bool { // the watch may begin after this
		c.updateBudget(t, b)
		select {
		case e := <-told:
			return assert.Contains(t, e.Message, "it clears when other pods become ready") && !e.Lasting
		default:
			return false
		}
	}, 10*time.Second, 20*time.Millisecond, "a replica more makes it a matter of time")
}

func TestADrainEndsEarlyOnlyWhereTimeCannotHelp(t *testing.T) {
	yes := true
	managed := func(o metav1.Object) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Database", Name: "db", Controller: &yes}})
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod, *policyv1.PodDisruptionBudget)
		opts   drain.Options
		early  bool
	}{
		"a budget that needs every replica": {early: true},
		"a replica could become ready":      {change: func(_ *corev1.Pod, b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 3 }},
		"the controller has yet to see it":  {change: func(_ *corev1.Pod, b *policyv1.PodDisruptionBudget) { b.Generation = 2 }},
		"an operator's budget":              {change: func(_ *corev1.Pod, b *policyv1.PodDisruptionBudget) { managed(b) }},
		"an operator's pod":                 {change: func(p *corev1.Pod, _ *policyv1.PodDisruptionBudget) { managed(p) }},
		"a Job's pod, which ends": {change: func(p *corev1.Pod, _ *policyv1.PodDisruptionBudget) {
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "batch/v1", "Job"
		}},
		"a bare pod, which nothing replaces": {early: true, opts: drain.Options{UnmanagedPods: drain.ActionEvict}, change: func(p *corev1.Pod, _ *policyv1.PodDisruptionBudget) { bare(p) }},
		"a bare pod, which ends": {opts: drain.Options{UnmanagedPods: drain.ActionEvict}, change: func(p *corev1.Pod, _ *policyv1.PodDisruptionBudget) {
			bare(p)
			p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}},
		"a policy that goes on at the end": {opts: drain.Options{OnTimeout: drain.ActionProceed}},
		"a policy that deletes at the end": {opts: drain.Options{OnTimeout: drain.ActionDelete}},
	} {
		t.Run(name, func(t *testing.T) {
			p, b := pod("a"), budget("web", "a", 0, 1)
			b.Status.DesiredHealthy = 2
			if tc.change != nil {
				tc.change(p, b)
			}
			c := newCluster(t, p, b)
			c.always["a"] = budgetError("web", 0)
			tc.opts.Timeout = 1500 * time.Millisecond
			if tc.early {
				tc.opts.Timeout = time.Hour
			}
			_, err := c.drain(t, tc.opts)
			if tc.opts.OnTimeout != "" {
				require.NoError(t, err)
				return
			}
			blocked := requireBlocked(t, err)
			assert.Equal(t, tc.early, blocked.Permanent)
			assert.Equal(t, drain.ReasonEvictionBlocked, blocked.Reason)
			assert.Equal(t, tc.early, strings.Contains(blocked.Message, ", and the drain ends before its timeout, since to wait longer does not help: "), blocked.Message)
			if tc.early {
				assert.Contains(t, blocked.Message, "shop/a")
				assert.Contains(t, blocked.Message, "it can never allow one")
			}
		})
	}
}

func TestADrainEndsEarlyForABudgetThatTheControllerCannotWorkOut(t *testing.T) {
	c := newCluster(t, web("a"), unsynced(nil))
	c.always["a"] = budgetError("web", 0)
	_, err := c.drain(t, drain.Options{Timeout: time.Hour})
	b := requireBlocked(t, err)
	assert.True(t, b.Permanent)
	assert.Equal(t, drain.ReasonEvictionBlocked, b.Reason)
	assert.Contains(t, b.Message, "jobs.batch does not implement the scale subresource")
}

func TestABudgetThatIsHealedInTimeDoesNotEndTheDrain(t *testing.T) {
	b := budget("web", "a", 0, 1)
	b.Status.DesiredHealthy = 2
	c := newCluster(t, pod("a"), b)
	c.always["a"] = budgetError("web", 0)
	done := make(chan error, 1)
	go func() {
		_, err := drain.New(c, drain.Options{Timeout: time.Hour}).Quick().Drain(t.Context(), node)
		done <- err
	}()
	<-c.watchingBudgets
	b.Status.ExpectedPods = 3 // scaled out; its pods are not ready for as long as it takes
	c.updateBudget(t, b)
	time.Sleep(time.Second)
	c.setAlways("a", nil)
	require.NoError(t, <-done)
}

func TestAFreedBudgetIsTakenAtOnceAndByOnePodOnly(t *testing.T) {
	a, b, other := pod("a"), pod("b"), pod("c")
	for _, p := range []*corev1.Pod{a, b, other} {
		p.Labels = map[string]string{"app": "web"}
	}
	c := newCluster(t, a, b, other, budget("web", "web", 0, 1))
	for _, n := range []string{"a", "b", "c"} {
		c.always[n] = budgetError("web", 0)
	}
	done, blocked := make(chan error, 1), make(chan drain.Event, 100)
	go func() {
		opts := drain.Options{Timeout: time.Minute, Progress: only(drain.EventBlocked, blocked)}
		_, err := drain.New(c, opts).WithoutFallback().Drain(t.Context(), node)
		done <- err
	}()
	for range 3 {
		assert.Contains(t, (<-blocked).Message, "budget web allows 0 disruptions")
	}
	<-c.watchingBudgets
	require.Zero(t, c.allTries(), "nothing is tried whose refusal is known")

	for i, version := 0, 2; i < 3; i, version = i+1, version+2 {
		for _, n := range []string{"a", "b", "c"} {
			c.setAlways(n, nil)
		}
		c.updateBudget(t, budget("web", "web", 1, version))
		require.Eventually(t, func() bool { return c.allTries() == 1+i }, 20*time.Second, time.Millisecond, "no fallback pace is needed")
		c.updateBudget(t, budget("web", "web", 0, version+1))
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, 1+i, c.allTries(), "one freed disruption wakes one pod")
	}
	require.NoError(t, <-done)
}

func TestADeletedBudgetAndAnUnhealthyPodWakeABlockedPod(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, c *cluster){
		"budget deleted": func(t *testing.T, c *cluster) {
			require.NoError(t, c.Tracker().Delete(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), "shop", "web"))
		},
		"pod became unready while the application is healthy": func(t *testing.T, c *cluster) {
			p := pod("a", unready)
			require.NoError(t, c.Tracker().Update(podsResource, p, "shop"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod("a"), budget("web", "a", 0, 1))
			done, blocked := make(chan error, 1), make(chan drain.Event, 100)
			go func() {
				opts := drain.Options{Timeout: 15 * time.Second, Progress: only(drain.EventBlocked, blocked)}
				_, err := drain.New(c, opts).WithoutFallback().Drain(t.Context(), node)
				done <- err
			}()
			<-blocked
			<-c.watchingBudgets
			require.Zero(t, c.triesOf("a"))
			change(t, c)
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(2 * time.Second):
				t.Fatal("the event did not wake the pod")
			}
		})
	}
}

func TestBlockedPodsShareOneSlowPace(t *testing.T) {
	c := newCluster(t)
	for i := range 10 {
		p := pod(string(rune('a' + i)))
		p.Labels = map[string]string{"app": "web"}
		require.NoError(t, c.Tracker().Add(p))
		c.always[p.Name] = budgetError("web", 0)
	}
	require.NoError(t, c.Tracker().Add(budget("web", "web", 0, 1)))
	result, err := c.drain(t, drain.Options{Timeout: 2 * time.Second}) // quick: one try per 200 to 280 ms
	b := requireBlocked(t, err)
	assert.Len(t, b.Pods, 10)
	assert.LessOrEqual(t, result.Requests, 10)
	assert.GreaterOrEqual(t, result.Requests, 3, "what the budgets say is not taken for granted for ever")
	for name, tries := range c.tries {
		assert.LessOrEqual(t, len(tries), 1+1, "pod %s: all take turns", name)
	}
}

func TestOverlappingBudgetsAreRefusedBeforeAnythingIsEvicted(t *testing.T) {
	c := newCluster(t, pod("a"), pod("b"), budget("web", "a", 1, 1), budget("all", "a", 1, 2))
	_, err := c.drain(t, drain.Options{})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonPDBOverlap, b.Reason)
	assert.True(t, b.Permanent)
	assert.Equal(t, []string{"all", "web"}, b.Pods[0].PDBs)
	assert.Contains(t, b.Message, "all and web")
	assert.Zero(t, c.allTries())
}

func TestAnOverlapThatComesUpDuringTheDrainEndsItWithoutRetries(t *testing.T) {
	c := newCluster(t, pod("a"), budget("web", "a", 0, 1))
	c.answers["a"] = []error{budgetError("web", 0)}
	c.always["a"] = overlapError()
	time.AfterFunc(50*time.Millisecond, func() { _ = c.Tracker().Add(budget("all", "a", 1, 2)) })
	_, err := c.drain(t, drain.Options{Timeout: 5 * time.Second})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonPDBOverlap, b.Reason)
	assert.Equal(t, 2, c.triesOf("a"))
}

func TestTheDeadlineFollowsThePolicy(t *testing.T) {
	blocked := func(t *testing.T) *cluster {
		c := newCluster(t, pod("a"), pod("b"), budget("web", "a", 0, 1))
		c.always["a"] = budgetError("web", 0)
		return c
	}
	t.Run("Fail deletes nothing", func(t *testing.T) {
		c := blocked(t)
		_, err := c.drain(t, drain.Options{Timeout: 300 * time.Millisecond})
		requireBlocked(t, err)
		assert.Empty(t, c.deletes)
	})
	t.Run("Proceed reports what is left", func(t *testing.T) {
		c := blocked(t)
		result, err := c.drain(t, drain.Options{Timeout: 300 * time.Millisecond, OnTimeout: drain.ActionProceed})
		require.NoError(t, err)
		require.Len(t, result.Remaining, 1)
		assert.Equal(t, "a", result.Remaining[0].Name)
		assert.Equal(t, drain.ReasonEvictionBlocked, result.Remaining[0].Reason)
		assert.Empty(t, c.deletes)
	})
	t.Run("Delete deletes only what is left, only after the deadline", func(t *testing.T) {
		c := blocked(t)
		started := time.Now()
		result, err := c.drain(t, drain.Options{Timeout: 300 * time.Millisecond, OnTimeout: drain.ActionDelete})
		require.NoError(t, err)
		assert.Equal(t, 1, result.Deleted)
		assert.Equal(t, 1, result.Evicted)
		assert.Equal(t, []string{"a"}, c.deletes)
		assert.GreaterOrEqual(t, time.Since(started), 300*time.Millisecond)
	})
}

func TestProgressTellsEachChangeOnce(t *testing.T) {
	c := newCluster(t, pod("a"), pod("b"), budget("web", "a", 0, 1))
	c.always["a"] = budgetError("web", 0)
	var mu sync.Mutex
	kinds := map[string]int{}
	_, err := c.drain(t, drain.Options{Timeout: time.Second, Progress: func(e drain.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds[string(e.Kind)+" "+e.Name]++
		assert.Equal(t, 2, e.Total)
	}})
	requireBlocked(t, err)
	assert.Equal(t, map[string]int{"Blocked a": 1, "Evicted b": 1, "Gone b": 1}, kinds)
	assert.Greater(t, c.triesOf("a"), 1, "it was retried, and that is no news")
}

// only passes on the events of one kind.
func only(kind drain.EventKind, to chan<- drain.Event) func(drain.Event) {
	return func(e drain.Event) {
		if e.Kind == kind {
			to <- e
		}
	}
}

func TestNoMoreRequestsAreSentThanABudgetHasRoomFor(t *testing.T) {
	c := newCluster(t)
	for i := range 10 {
		p := pod(string(rune('a' + i)))
		p.Labels = map[string]string{"app": "web"}
		require.NoError(t, c.Tracker().Add(p))
		c.lingers[p.Name] = true
	}
	require.NoError(t, c.Tracker().Add(budget("web", "web", 3, 1)))
	events := make(chan drain.Event, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		opts := drain.Options{Progress: func(e drain.Event) { events <- e }}
		_, _ = drain.New(c, opts).WithoutFallback().Drain(ctx, node)
	}()
	evicted, held := 0, 0
	for range 10 {
		switch e := <-events; e.Kind {
		case drain.EventEvicted:
			evicted++
		case drain.EventBlocked:
			held++
			assert.Contains(t, e.Message, "budget web allows 3 disruptions at a time, and others have taken them")
		default:
			assert.Fail(t, "unexpected event", "%+v", e)
		}
	}
	assert.Equal(t, []int{3, 7}, []int{evicted, held})
	assert.Equal(t, 3, c.allTries(), "nobody asked for what was taken")
}

func TestDrainsOfOneClusterShareWhatABudgetHasLeft(t *testing.T) {
	c := newCluster(t, budget("web", "web", 0, 1))
	names := []string{"host-1", "host-2", "host-3"}
	for _, host := range names {
		p := pod("on-" + host)
		p.Labels, p.Spec.NodeName = map[string]string{"app": "web"}, host
		require.NoError(t, c.Tracker().Add(p))
		if host != node {
			require.NoError(t, c.Tracker().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}}))
		}
		c.lingers[p.Name] = true
	}
	c.onlyPodsOfTheirNode()
	shared := drain.NewCluster(c)
	blocked := make(chan drain.Event, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, host := range names {
		go func() {
			_, _ = shared.Drainer(drain.Options{Progress: only(drain.EventBlocked, blocked)}).WithoutFallback().Drain(ctx, host)
		}()
	}
	for range names {
		<-blocked
	}
	<-c.watchingBudgets
	c.updateBudget(t, budget("web", "web", 1, 2))
	require.Eventually(t, func() bool { return c.allTries() > 0 }, 10*time.Second, time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	assert.Equal(t, 1, c.allTries(), "one freed disruption wakes one pod of all nodes")
	lists := 0
	for _, a := range c.Actions() {
		if a.Matches("list", "poddisruptionbudgets") {
			lists++
		}
	}
	assert.Equal(t, 1, lists, "budgets are watched once")
}
