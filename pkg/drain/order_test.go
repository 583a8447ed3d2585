package drain_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
)

func withOrder(order string) podOption {
	return func(p *corev1.Pod) { p.Labels[v1alpha1.LabelDrainOrder] = order }
}

func withPriority(priority int32) podOption {
	return func(p *corev1.Pod) { p.Spec.Priority = &priority }
}

func TestPodsOfAHigherOrderWaitUntilThoseOfALowerOneHaveLeft(t *testing.T) {
	c := newCluster(t, pod("storage", withOrder("100")), pod("app"), pod("cache", withOrder("-5")), pod("ingress", withOrder("90")))
	for _, name := range []string{"cache", "app", "ingress"} {
		c.lingers[name] = true
	}
	for i, name := range []string{"cache", "app", "ingress"} {
		c.removeAfter(time.Duration(i+1)*300*time.Millisecond, name)
	}
	_, err := c.drain(t, drain.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	order := []string{"cache", "app", "ingress", "storage"}
	for i, name := range order {
		require.Len(t, c.tries[name], 1, name)
		if i > 0 {
			assert.True(t, c.tries[name][0].After(c.removed[order[i-1]]), "%s waits for %s to leave", name, order[i-1])
		}
	}
}

func TestAPodThatIsBlockedKeepsThoseAfterItFromBeingEvicted(t *testing.T) {
	c := newCluster(t, pod("app"), pod("storage", withOrder("100")), budget("web", "app", 0, 1))
	c.always["app"] = budgetError("web", 0)
	_, err := c.drain(t, drain.Options{Timeout: time.Second})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonEvictionBlocked, b.Reason)
	assert.Contains(t, b.Message, "shop/storage")
	assert.Zero(t, c.triesOf("storage"))
}

func TestALabelThatIsNoOrderCountsAs0AndIsTold(t *testing.T) {
	for _, text := range []string{"last", "1e3", "1001", "-1001", "", "99999999999999999999"} {
		t.Run(strconv.Quote(text), func(t *testing.T) {
			c := newCluster(t, pod("a", withOrder(text)), pod("b"))
			c.lingers["b"] = true
			c.removeAfter(time.Second, "b")
			warnings := make(chan drain.Event, 10)
			started := time.Now()
			_, err := c.drain(t, drain.Options{Timeout: 10 * time.Second, Progress: only(drain.EventWarning, warnings)})
			require.NoError(t, err)
			assert.Less(t, c.tries["a"][0].Sub(started), 900*time.Millisecond, "it waited for nobody")
			require.Len(t, warnings, 1)
			w := <-warnings
			assert.Equal(t, "a", w.Name)
			assert.Equal(t, drain.ReasonDrainOrderUnreadable, w.Reason)
			assert.Contains(t, w.Message, strconv.Quote(text))
		})
	}
}

func TestTheLeastImportantPodIsFirstToUseWhatABudgetAllows(t *testing.T) {
	c := newCluster(t, budget("web", "web", 1, 1))
	for name, priority := range map[string]int32{"a": 1000, "b": 5, "c": 2_000_000_000} {
		p := pod(name, withPriority(priority))
		p.Labels["app"] = "web"
		require.NoError(t, c.Tracker().Add(p))
		c.lingers[name] = true
	}
	_, err := c.drain(t, drain.Options{Timeout: 100 * time.Millisecond})
	requireBlocked(t, err)
	assert.Equal(t, []int{0, 1, 0}, []int{c.triesOf("a"), c.triesOf("b"), c.triesOf("c")})
}

func FuzzOrderOf(f *testing.F) {
	for _, seed := range []string{"0", "100", "-1000", "1001", "last", "", "+5", "0x10", "1_000", "٣"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		order, err := drain.OrderOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelDrainOrder: text}}})
		assert.LessOrEqual(t, order, 1000)
		assert.GreaterOrEqual(t, order, -1000)
		if err != nil {
			assert.Zero(t, order)
			return
		}
		again, err := drain.OrderOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelDrainOrder: strconv.Itoa(order)}}})
		require.NoError(t, err)
		assert.Equal(t, order, again)
	})
}
