package checks

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reader is a book, its clock in seconds after Now, and who was told.
func reader(t *testing.T) (*Book, *atomic.Int64, chan string) {
	t.Helper()
	_, w := cluster(t)
	var clock atomic.Int64
	told := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &Book{
		Base: ctx, Nodes: w.nodes, Workload: w.pods, Changed: func(ns string) { told <- ns },
		Now: func() time.Time { return Now.Add(time.Duration(clock.Load()) * time.Second) },
	}, &clock, told
}

func pool(t *testing.T) *fleet.Fleet { f, _ := cluster(t); return f }

func heard(t *testing.T, told chan string) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(time.Minute):
		require.Fail(t, "no answer came")
	}
}

func TestAQuestionIsAskedOnceInAWhileAndItsAnswerCountsFromBefore(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); says(vector(sample("1")))(w, r) }))
	defer s.Close()
	b, clock, told := reader(t)
	f := pool(t)
	q := Question{Check: v1alpha1.Check{Name: "p", Prometheus: &v1alpha1.PrometheusCheck{URL: s.URL, Query: "1"}}, Machine: f.Find("w1")}
	other := Question{Check: q.Check, Machine: f.Find("w2")}
	_, known := b.Known(q)
	assert.False(t, known)

	b.Ask([]Question{q, other, q})
	heard(t, told)
	o, known := b.Known(other)
	require.True(t, known, "it is one question of the pool")
	assert.Equal(t, fleet.CheckOutcome{State: fleet.CheckPassed, At: Now}, o)
	assert.EqualValues(t, 1, asked.Load())

	clock.Store(9)
	b.Ask([]Question{q})
	clock.Store(10)
	b.Ask([]Question{q})
	heard(t, told)
	assert.EqualValues(t, 2, asked.Load())
	o, _ = b.Known(q)
	assert.Equal(t, Now.Add(10*time.Second), o.At)

	q.Check.Prometheus = &v1alpha1.PrometheusCheck{URL: s.URL, Query: "2"}
	_, known = b.Known(q)
	assert.False(t, known, "with another text it is another question")
}

func TestAQuestionAboutTheMachineIsOneForEach(t *testing.T) {
	b, _, told := reader(t)
	f := pool(t)
	of := func(name string) Question {
		return Question{Check: v1alpha1.Check{Name: "c", CEL: `machine.metadata.name == "w1"`}, Machine: f.Find(name)}
	}
	b.Ask([]Question{of("w1"), of("w2")})
	heard(t, told)
	heard(t, told)
	w1, _ := b.Known(of("w1"))
	w2, _ := b.Known(of("w2"))
	assert.Equal(t, fleet.CheckPassed, w1.State)
	assert.Equal(t, fleet.CheckFailed, w2.State)
}

func TestWhatCanNeverBeAskedIsKnownAtOnce(t *testing.T) {
	b, _, _ := reader(t)
	o, known := b.Known(Question{Check: v1alpha1.Check{Name: "c", CEL: "nodes.all("}, Machine: pool(t).Find("w1")})
	require.True(t, known)
	assert.Equal(t, fleet.CheckInvalid, o.State)
	assert.Contains(t, o.Message, `check "c"`)
}

func TestAnAnswerThatNobodyAsksForIsForgotten(t *testing.T) {
	b, clock, told := reader(t)
	f := pool(t)
	q := Question{Check: v1alpha1.Check{Name: "c", CEL: "true"}, Machine: f.Find("w1")}
	b.Ask([]Question{q})
	heard(t, told)
	clock.Store(int64(keeps/time.Second) + 1)
	b.Ask([]Question{{Check: v1alpha1.Check{Name: "d", CEL: "1 < 2"}, Machine: f.Find("w1")}})
	heard(t, told)
	_, known := b.Known(q)
	assert.False(t, known)
}
