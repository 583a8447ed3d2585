package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/refit-dev/refit/pkg/drain"
)

const (
	slots       = 50 // nodes that are drained at a time
	podsPerNode = 3
	podsPerApp  = 30 // each with a budget that lets a quarter of them go at a time
	envFleet    = "REFIT_SCALE_DRAINS"
)

// fleetOrder is what the draining process is asked for.
type fleetOrder struct {
	Kubeconfig, Owner, Prefix string
	Nodes                     int
	Shared                    bool // one drain.Cluster for all, or one each
}

// fleetAnswer is what it says of itself.
type fleetAnswer struct {
	Evictions, Accepted int
	PeakKiB             int
	Seconds             float64
}

// TestDrainingProcess is not a test: it is the process that drains, and nothing else is in its memory.
func TestDrainingProcess(t *testing.T) {
	text := os.Getenv(envFleet)
	if text == "" {
		t.Skip("started by another test")
	}
	var order fleetOrder
	require.NoError(t, json.Unmarshal([]byte(text), &order))
	config, err := clientcmd.BuildConfigFromFlags("", order.Kubeconfig)
	require.NoError(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	cluster := drain.NewCluster(client)
	results := make([]drain.Result, order.Nodes)
	start := time.Now()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(slots)
	for i := range order.Nodes {
		g.Go(func() error {
			d := cluster.Drainer(drain.Options{})
			if !order.Shared {
				d = drain.New(client, drain.Options{})
			}
			node := fmt.Sprintf("%s-%04d", order.Prefix, i)
			var err error
			if results[i], err = d.Take(ctx, node, order.Owner); err != nil {
				return fmt.Errorf("draining %s: %w", node, err)
			}
			return drain.Uncordon(ctx, client, node, order.Owner)
		})
	}
	require.NoError(t, g.Wait())
	answer := fleetAnswer{Seconds: time.Since(start).Seconds(), PeakKiB: peakMemory(t)}
	for _, r := range results {
		answer.Evictions += r.Requests
		answer.Accepted += r.Evicted
	}
	out, err := json.Marshal(answer)
	require.NoError(t, err)
	fmt.Printf("ANSWER %s\n", out)
}

// peakMemory is the most memory that this process has had.
func peakMemory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			var kib int
			_, err := fmt.Sscan(rest, &kib)
			require.NoError(t, err)
			return kib
		}
	}
	return 0
}

func TestAThousandNodesAreDrainedFiftyAtATime(t *testing.T) {
	w := newDrainWorld(t)
	w.replace = true
	require.NoError(t, w.addNode(t.Context(), "spare"))
	type row struct {
		name                     string
		nodes                    int
		answer                   fleetAnswer
		requests, lists, watches int
	}
	var rows []row
	for _, phase := range []struct {
		name   string
		nodes  int
		shared bool
	}{{"each", 200, false}, {"fewer", 200, true}, {"all", 1000, true}} {
		w.fill(phase.name, phase.nodes)
		kubeconfig := w.server.WriteKubeconfig(t, t.TempDir(), "drains-"+phase.name, "system:masters")
		order, err := json.Marshal(fleetOrder{Kubeconfig: kubeconfig, Owner: "grant-" + phase.name, Prefix: phase.name, Nodes: phase.nodes, Shared: phase.shared})
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDrainingProcess$", "-test.v", "-test.timeout", "20m")
		cmd.Env = append(os.Environ(), envFleet+"="+string(order))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		r := row{name: phase.name, nodes: phase.nodes}
		_, rest, found := strings.Cut(string(out), "ANSWER ")
		require.True(t, found, "%s", out)
		line, _, _ := strings.Cut(rest, "\n")
		require.NoError(t, json.Unmarshal([]byte(line), &r.answer))
		log := w.log().By("drains-" + phase.name)
		r.requests, r.watches = log.Requests(), log.MostWatches()
		for _, e := range log {
			if e.Verb == "list" && e.ObjectRef.Resource == "poddisruptionbudgets" {
				r.lists++
			}
			assert.NotEqual(t, "pods delete", e.ObjectRef.Resource+" "+e.Verb)
		}
		rows = append(rows, r)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Printf("%d nodes at a time, %d pods on each, %d pods in each budget\n", slots, podsPerNode, podsPerApp)
	fmt.Fprintln(out, "BUDGETS WATCHED\tNODES\tEVICTIONS ASKED/ACCEPTED\tREQUESTS/POD\tMOST WATCHES\tPEAK MIB\tSECONDS")
	for _, r := range rows {
		watched := map[bool]string{true: "once for all", false: "by each drain"}[r.name != "each"]
		fmt.Fprintf(out, "%s\t%d\t%.2f\t%.2f\t%d\t%.0f\t%.0f\n", watched, r.nodes, float64(r.answer.Evictions)/float64(r.answer.Accepted),
			float64(r.requests)/float64(r.nodes*podsPerNode), r.watches, float64(r.answer.PeakKiB)/1024, r.answer.Seconds)
	}
	require.NoError(t, out.Flush())

	each, fewer, all := rows[0], rows[1], rows[2]
	assert.Equal(t, 1000*podsPerNode, all.answer.Accepted)
	assert.Less(t, float64(all.answer.Evictions), 1.5*float64(all.answer.Accepted), "hardly a request is refused")
	assert.LessOrEqual(t, all.watches, slots+slots/5, "watches are bounded by the slots; an ended one is logged a moment later")
	assert.Greater(t, each.watches, all.watches)
	assert.Less(t, float64(all.answer.PeakKiB), 1.5*float64(fewer.answer.PeakKiB), "memory follows the slots, not the fleet")
	assert.LessOrEqual(t, all.lists, 1)
}

// fill makes the nodes and their pods, spread over applications with a budget each.
func (w *drainWorld) fill(prefix string, nodes int) {
	w.t.Helper()
	w.addNamespace(prefix)
	apps := nodes * podsPerNode / podsPerApp
	w.together(nodes, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("%s-%04d", prefix, i)
		if err := w.addNode(ctx, name); err != nil {
			return err
		}
		for p := range podsPerNode {
			app := fmt.Sprintf("app-%d", (i*podsPerNode+p)%apps)
			if err := w.makePod(ctx, prefix, fmt.Sprintf("%s-%d", name, p), name, app, true); err != nil {
				return err
			}
		}
		return nil
	})
	w.together(apps, func(ctx context.Context, a int) error {
		return w.makeBudget(ctx, prefix, fmt.Sprintf("app-%d", a), podsPerApp*3/4)
	})
	w.awaitBudgets(prefix, podsPerApp)
}
