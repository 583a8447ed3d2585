package order_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/order"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	hosts, slots   = 1000, 50
	failing        = 0.05
	ofHost, ofTurn = 0.7, 0.387 // of the logarithm: what a host always takes, and what this turn adds; together 0.8
	rollouts       = 20
)

// turns are what the operations of one rollout take, and what was measured before it.
type turns struct {
	now     []time.Duration
	history [][]time.Duration
}

func drawn(seed uint64) turns {
	r := rand.New(rand.NewPCG(seed, 1))
	var t turns
	for range hosts {
		host := ofHost * r.NormFloat64()
		turn := func() time.Duration {
			return time.Duration(math.Exp(host+ofTurn*r.NormFloat64()) * float64(5*time.Minute)).Round(time.Millisecond)
		}
		now := turn()
		if r.Float64() < failing { // somewhere on the way
			now = time.Duration(float64(now) * r.Float64())
		}
		t.now = append(t.now, now)
		t.history = append(t.history, []time.Duration{turn(), turn(), turn()})
	}
	return t
}

// bound is what no order can beat.
func (t turns) bound() time.Duration {
	var sum, longest time.Duration
	for _, d := range t.now {
		sum, longest = sum+d, max(longest, d)
	}
	return max(sum/slots, longest)
}

// fleetOf has the measurements, and knows nothing of what the turns take now.
func (t turns) fleetOf(known bool) *fleet.Fleet {
	b := New().Deployment("w")
	for i := range hosts {
		b.Machine(fmt.Sprintf("w%04d", i), "w", worker, Of(func(m *v1alpha1.Machine) {
			for _, d := range t.history[i] {
				if known {
					m.Status.History = append(m.Status.History, v1alpha1.HistoryEntry{State: v1alpha1.OperationSuccessful,
						Phases: []v1alpha1.PhaseDuration{{Name: "Drain", Duration: metav1.Duration{Duration: d}}}})
				}
			}
		}))
	}
	return b.Build()
}

// ends are when the slots are free again.
type ends []time.Duration

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(time.Duration)) }
func (e *ends) Pop() any          { last := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return last }

func index(m *fleet.Machine) int {
	i, _ := strconv.Atoi(m.Name[1:])
	return i
}

// refilled gives each slot to the next candidate as soon as it is free, or is seen to be.
func (t turns) refilled(f *fleet.Fleet, seen func(time.Duration) time.Duration) time.Duration {
	free, last := make(ends, slots), time.Duration(0)
	for _, next := range order.Candidates(f) { // whose slots do not change the order of those that wait
		end := seen(heap.Pop(&free).(time.Duration)) + t.now[index(next)]
		heap.Push(&free, end)
		last = max(last, end)
	}
	return last
}

// batches begin together, each when all of the one before it have ended.
func (t turns) batches(f *fleet.Fleet) time.Duration {
	var total time.Duration
	all := order.Candidates(f)
	for len(all) > 0 {
		var longest time.Duration
		for _, m := range all[:slots] {
			longest = max(longest, t.now[index(m)])
		}
		total += longest
		all = all[slots:]
	}
	return total
}

// Of a thousand machines, what one order makes of the same rollouts and what others would.
// No order knows what a turn takes: only what earlier ones took.
func TestARolloutTakesLittleMoreThanItHasTo(t *testing.T) {
	atOnce := func(d time.Duration) time.Duration { return d }
	byTheMinute := func(d time.Duration) time.Duration {
		if d == 0 {
			return 0
		}
		return d.Truncate(time.Minute) + time.Minute
	}
	ways := []struct {
		name string
		of   func(turns) time.Duration
	}{
		{"Refit, with what was measured before", func(r turns) time.Duration { return r.refilled(r.fleetOf(true), atOnce) }},
		{"Refit, when nothing was measured", func(r turns) time.Duration { return r.refilled(r.fleetOf(false), atOnce) }},
		{"the next one after a requeue of a minute", func(r turns) time.Duration { return r.refilled(r.fleetOf(false), byTheMinute) }},
		{"batches that wait for their last one", func(r turns) time.Duration { return r.batches(r.fleetOf(false)) }},
	}
	mean, worst := make([]float64, len(ways)), make([]float64, len(ways))
	for seed := range rollouts {
		r := drawn(uint64(seed))
		for i, way := range ways {
			part := float64(r.bound()) / float64(way.of(r))
			mean[i] += part / rollouts
			if seed == 0 || part < worst[i] {
				worst[i] = part
			}
		}
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "bound / makespan\tmean\tworst of %d\t\n", rollouts)
	for i, way := range ways {
		_, _ = fmt.Fprintf(w, "%s\t%.3f\t%.3f\t\n", way.name, mean[i], worst[i])
	}
	_ = w.Flush()
	t.Logf("%d machines, %d slots, %.0f %% of them fail\n%s", hosts, slots, 100*failing, text.String())

	assert.GreaterOrEqual(t, worst[0], 0.95)
	assert.Greater(t, mean[0], mean[1])
	assert.Greater(t, mean[1], mean[2])
	assert.Greater(t, mean[2], mean[3])
}
