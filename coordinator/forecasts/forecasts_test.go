package forecasts_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/refit-dev/refit/coordinator/forecasts"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

var w1 = types.NamespacedName{Namespace: "refit", Name: "w1"}

func request(options drain.Options) forecasts.Request {
	return forecasts.Request{Machine: w1, Generation: 3, Node: "w1", Options: options, Version: string(options.UnmanagedPods)}
}

// desk is a book with a clock and a record of what it told.
type desk struct {
	*forecasts.Book
	kube *fake.Clientset
	mu   sync.Mutex
	now  time.Time
	told int
}

func newDesk(t *testing.T, objects ...runtime.Object) *desk {
	d := &desk{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	d.kube = fake.NewClientset(append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}})...)
	d.Book = &forecasts.Book{
		Base: t.Context(), Client: d.kube, Now: func() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.now },
		Changed: func(types.NamespacedName) { d.mu.Lock(); defer d.mu.Unlock(); d.told++ },
	}
	return d
}

func (d *desk) pass(by time.Duration) { d.mu.Lock(); defer d.mu.Unlock(); d.now = d.now.Add(by) }

func (d *desk) tellings() int { d.mu.Lock(); defer d.mu.Unlock(); return d.told }

func bare(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: "w1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

func TestAnAnswerIsRememberedForAWhileAndForOneGeneration(t *testing.T) {
	d := newDesk(t, bare("a"))
	f := d.Ask(t.Context(), request(drain.Options{}))
	assert.Equal(t, "False UnmanagedPods", string(f.Status)+" "+f.Reason)
	known, ok := d.Known(w1, 3)
	require.True(t, ok)
	assert.Equal(t, f, known)
	_, ok = d.Known(w1, 4)
	assert.False(t, ok, "of another spec")
	assert.Equal(t, 1, d.tellings())
	d.Ask(t.Context(), request(drain.Options{}))
	assert.Equal(t, 1, d.tellings(), "nothing new")
	d.pass(11 * time.Minute)
	_, ok = d.Known(w1, 3)
	assert.False(t, ok, "it is asked again")

	assert.Equal(t, "DrainFree", d.Ask(t.Context(), request(drain.Options{UnmanagedPods: drain.ActionEvict})).Reason)
	assert.Equal(t, 2, d.tellings())
}

func TestWhatIsFollowedStaysKnownAndChangesWithThePolicy(t *testing.T) {
	d := newDesk(t, bare("a"))
	d.Follow("refit", []forecasts.Request{request(drain.Options{})})
	reason := func() string {
		f, _ := d.Known(w1, 3)
		return f.Reason
	}
	require.Eventually(t, func() bool { return reason() == "UnmanagedPods" }, 10*time.Second, 10*time.Millisecond)
	d.pass(time.Hour)
	assert.Equal(t, "UnmanagedPods", reason())
	d.Follow("other", nil)
	assert.Equal(t, "UnmanagedPods", reason(), "another namespace has no say")
	d.Follow("refit", []forecasts.Request{request(drain.Options{UnmanagedPods: drain.ActionEvict})})
	require.Eventually(t, func() bool { return reason() == "DrainFree" }, 10*time.Second, 10*time.Millisecond)
	d.Follow("refit", nil)
	d.pass(time.Hour)
	assert.Empty(t, reason(), "it is not followed any more")
}

func TestWhatCannotBeFoundOutIsUnknown(t *testing.T) {
	d := newDesk(t)
	d.kube.PrependReactor("get", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
	f := d.Ask(t.Context(), request(drain.Options{}))
	assert.Equal(t, "Unknown ForecastFailed", string(f.Status)+" "+f.Reason)
	assert.Contains(t, f.Message, "no answer")
}
