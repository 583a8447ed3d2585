package scale

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/pkg/drain"
)

// runs of each measurement; the tables show their median and their spread.
const runs = 5

// drainer empties a node until ctx ends. Each run has a user of its own.
type drainer struct {
	name  string
	drain func(ctx context.Context, user, node string) error
}

// drainers are ours and `kubectl drain` of the server's release, as an operator calls it.
func (w *drainWorld) drainers() []drainer {
	kubectl := w.server.Kubectl(w.t)
	return []drainer{
		{"refit", func(ctx context.Context, user, node string) error {
			_, err := drain.New(w.clientOf(user), drain.Options{}).Take(ctx, node, user)
			return err
		}},
		{"kubectl", func(ctx context.Context, user, node string) error {
			config := w.server.WriteKubeconfig(w.t, w.t.TempDir(), user, "system:masters")
			cmd := exec.CommandContext(ctx, kubectl, "--kubeconfig", config, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data")
			if out, err := cmd.CombinedOutput(); err != nil && ctx.Err() == nil {
				return fmt.Errorf("kubectl drain: %w: %s", err, out)
			}
			return nil
		}},
	}
}

// floor is the least that any drain pays on this machine: all evictions at once, as many
// at a time as ours, by someone who is told of the last pod's end without asking.
func (w *drainWorld) floor() drainer {
	return drainer{"floor", func(ctx context.Context, user, node string) error {
		client := w.clientOf(user)
		pods, err := client.CoreV1().Pods(user).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ended := w.awaitEnds(len(pods.Items))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(32)
		for _, p := range pods.Items {
			g.Go(func() error {
				return client.PolicyV1().Evictions(user).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: user, Name: p.Name}})
			})
		}
		if err := g.Wait(); err != nil {
			return fmt.Errorf("evicting the pods of %s: %w", node, err)
		}
		<-ended
		return nil
	}}
}

// spread is one measured quantity over the runs.
type spread []float64

func (s spread) median() float64 { return slices.Sorted(slices.Values(s))[len(s)/2] }

func (s spread) String() string {
	return fmt.Sprintf("%.0f (%.0f to %.0f)", s.median(), slices.Min(s), slices.Max(s))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// compare prints each quantity of both drainers and their ratio, and returns the ratios of the medians.
func compare(t *testing.T, title string, quantities []string, seen map[string]map[string]spread) map[string]float64 {
	t.Helper()
	ratios := map[string]float64{}
	fmt.Printf("%s: median (least to most) of %d runs\n", title, runs)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tREFIT\tKUBECTL\tREFIT/KUBECTL\tTHE LEAST")
	for _, q := range quantities {
		ours, theirs, least := seen["refit"][q], seen["kubectl"][q], ""
		if values := seen["floor"][q]; len(values) > 0 {
			least = values.String()
		}
		ratios[q] = ours.median() / theirs.median()
		fmt.Fprintf(out, "%s\t%s\t%s\t%.2f\t%s\n", q, ours, theirs, ratios[q], least)
	}
	require.NoError(t, out.Flush())
	return ratios
}

func TestADrainTakesLittleMoreThanItsPods(t *testing.T) {
	w := newDrainWorld(t)
	const pods = 110
	const window, after, requests = "ms beyond the pods' grace", "ms beyond it, from the first eviction", "requests"
	seen := map[string]map[string]spread{}
	for i := range runs {
		for _, d := range append(w.drainers(), w.floor()) {
			user := fmt.Sprintf("%s-full-%d", d.name, i)
			w.addNamespace(user)
			require.NoError(t, w.addNode(t.Context(), user))
			w.together(pods, func(ctx context.Context, p int) error {
				return w.makePod(ctx, user, fmt.Sprintf("pod-%d", p), user, "app", true)
			})
			start := time.Now()
			require.NoError(t, d.drain(t.Context(), user, user))
			end := time.Now()
			log := w.log().By(user)
			seen[d.name] = add(seen[d.name], window, milliseconds(end.Sub(start)-grace))
			seen[d.name] = add(seen[d.name], after, milliseconds(end.Sub(firstEviction(log))-grace))
			seen[d.name] = add(seen[d.name], requests, float64(log.Requests()))
		}
	}
	ratios := compare(t, fmt.Sprintf("a node with %d pods that end after %s", pods, grace), []string{window, after, requests}, seen)
	assert.Less(t, ratios[window], 1.0)
	assert.Less(t, ratios[after], 1.0)
	assert.Less(t, ratios[requests], 0.6)
	ownShare := seen["refit"][after].median() / seen["floor"][after].median()
	t.Logf("ours take %.2f times the time beyond grace that the API server alone takes", ownShare)
	assert.Less(t, ownShare, 2.0)
}

func TestABudgetThatFreesIsUsedBeforeAPeerLooksAgain(t *testing.T) {
	w := newDrainWorld(t)
	const late = "ms beyond the budget's freeing and the pod's grace"
	seen := w.side(t, "freed", func(d drainer, user string) map[string]float64 {
		require.NoError(t, w.makePod(t.Context(), user, "web-1", user, "web", true))
		require.NoError(t, w.makePod(t.Context(), user, "web-2", "elsewhere", "web", false))
		require.NoError(t, w.makeBudget(t.Context(), user, "web", 1))
		w.awaitBudgets(user, 1)
		freed := make(chan time.Time, 1)
		time.AfterFunc(3*time.Second, func() {
			freed <- time.Now()
			_ = w.setReady(t.Context(), user, "web-2", true)
		})
		assert.NoError(t, d.drain(t.Context(), user, user))
		return map[string]float64{late: milliseconds(time.Since(<-freed) - grace)}
	})
	ratios := compare(t, "a node whose budget frees after 3s", []string{late}, seen)
	assert.Less(t, ratios[late], 0.7)
}

func TestABlockedDrainAsksLittle(t *testing.T) {
	w := newDrainWorld(t)
	const pods, perMinute = 10, "requests per minute, 10 pods blocked"
	seen := w.side(t, "blocked", func(d drainer, user string) map[string]float64 {
		w.together(pods, func(ctx context.Context, p int) error {
			return w.makePod(ctx, user, fmt.Sprintf("web-%d", p), user, "web", true)
		})
		require.NoError(t, w.makePod(t.Context(), user, "web-unready", "elsewhere", "web", false))
		require.NoError(t, w.makeBudget(t.Context(), user, "web", pods))
		w.awaitBudgets(user, pods)
		ctx, cancel := context.WithTimeout(t.Context(), 75*time.Second)
		defer cancel()
		began := time.Now().Add(10 * time.Second)
		_ = d.drain(ctx, user, user)
		return map[string]float64{perMinute: float64(w.log().By(user).Between(began, began.Add(time.Minute)).Requests())}
	})
	ratios := compare(t, "a node whose budget does not free", []string{perMinute}, seen)
	assert.Less(t, ratios[perMinute], 0.1)
	assert.LessOrEqual(t, slices.Max(seen["refit"][perMinute]), 12.0)
	list, err := w.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, 2*runs*(pods+1), "nothing was evicted")
}

// side measures both drainers, all runs beside each other, each on a node of its own.
func (w *drainWorld) side(t *testing.T, what string, measure func(d drainer, user string) map[string]float64) map[string]map[string]spread {
	t.Helper()
	seen := map[string]map[string]spread{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range runs {
		for _, d := range w.drainers() {
			user := fmt.Sprintf("%s-%s-%d", d.name, what, i)
			w.addNamespace(user)
			require.NoError(t, w.addNode(t.Context(), user))
			all.Go(func() {
				values := measure(d, user)
				mu.Lock()
				defer mu.Unlock()
				for q, v := range values {
					seen[d.name] = add(seen[d.name], q, v)
				}
			})
		}
	}
	all.Wait()
	return seen
}

func add(to map[string]spread, quantity string, v float64) map[string]spread {
	if to == nil {
		to = map[string]spread{}
	}
	to[quantity] = append(to[quantity], v)
	return to
}
