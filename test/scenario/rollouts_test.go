package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

const (
	rolledPool    = "workers"
	rolledServing = 3
	rolledPods    = 6
)

// TestAPoolIsRolledOnItsStandby rolls three workers and a standby: to another minor in one edit, into a machine that
// gets stuck and back again, and to another runtime while whoever leads is killed again and again. The subtests share
// one fleet and run in order.
func TestAPoolIsRolledOnItsStandby(t *testing.T) {
	if os.Getenv("REFIT_ROLLOUTS") == "" {
		t.Skip("set REFIT_ROLLOUTS=1 (as root) to roll a real fleet several times: make e2e")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 75*time.Minute)
	defer cancel()
	s := &story{t: t, ctx: ctx}
	f, err := testfleet.Up(ctx, Options("rollouts", rolledServing+1, os.Stderr))
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			s.dump()
		}
		if os.Getenv("REFIT_KEEP_FLEET") == "" {
			require.NoError(t, f.Down(context.Background()))
		}
	})
	s.env, err = Open(f, os.Stderr)
	require.NoError(t, err)
	require.NoError(t, s.env.DeployAppOf(ctx, AppImage, rolledPods, rolledPods-1))
	require.NoError(t, s.env.Install(ctx))
	require.NoError(t, s.env.Adopt(ctx))
	r := &roller{keeper: &keeper{Env: s.env, ctx: ctx}, operations: map[string]int{}}
	require.True(t, t.Run("a machine is emptied to stand by", r.standsBy))
	require.True(t, t.Run("one edit takes all to the next minor, and no fewer serve", r.nextMinor))
	require.True(t, t.Run("a machine that gets stuck pauses the rollout, and others are not touched", r.stuck))
	require.True(t, t.Run("undo brings back the runtime that ran before", r.undone))
	t.Run("the leader killed at any moment loses no grant and drains nothing twice", r.leaderKilled)
}

type roller struct {
	*keeper
	operations map[string]int // each host's operations at the end of the last rollout, by its own record
	spare      string         // who stood by at the end of the last rollout
	failed     string         // who got stuck
}

// rolling is a rollout that is watched from outside.
type rolling struct {
	serving *servingSampler
	gone    *Deletions
	cordons *cordons
	pods    map[string]bool // of the application, when it began
	began   time.Time
}

func (r *roller) watch(t *testing.T) *rolling {
	t.Helper()
	w := &rolling{serving: r.startServingSampler(r.ctx), pods: map[string]bool{}, began: time.Now()}
	var err error
	w.gone, err = r.StartDeletions(r.ctx, AppNamespace)
	require.NoError(t, err)
	w.cordons, err = r.startCordons(r.ctx)
	require.NoError(t, err)
	for _, p := range r.appPods(t) {
		w.pods[p] = true
	}
	return w
}

func (r *roller) appPods(t *testing.T) []string {
	t.Helper()
	out, err := r.Kubectl(r.ctx, "get", "pods", "-n", AppNamespace, "-l", "app="+AppName, "-o", "jsonpath={.items[*].metadata.name}")
	require.NoError(t, err)
	return strings.Fields(out)
}

// judge says what every rollout has to keep.
func (r *roller) judge(t *testing.T, w *rolling) map[string][]string {
	t.Helper()
	low, looks, missed := w.serving.Stop()
	require.Greater(t, looks, int(time.Since(w.began)/(4*time.Second)), "a run that was hardly looked at shows nothing")
	assert.GreaterOrEqual(t, len(low.serving), rolledServing, "%s", low)
	moved, again := 0, 0
	gone := w.gone.Stop()
	for _, g := range gone {
		assert.True(t, g.Evicted, "%s on %s went away without eviction", g.Name, g.Node)
		moved++
		if !w.pods[g.Name] {
			again++
		}
	}
	grants := w.cordons.Stop()
	r.Say("rollout: %s, %d looks at the nodes (%d without an answer, at most %s apart), fewest serving %d of %d; %d pods of the application evicted, %d of them twice",
		time.Since(w.began).Round(time.Second), looks, missed, w.serving.most().Round(10*time.Millisecond), len(low.serving), rolledServing, moved, again)
	seats, emptied := w.serving.leaders()
	r.Say("the lead was on %s; nodes emptied while it was there: %q", strings.Join(seats, ", "), emptied)
	return grants
}

// pool changes the workers' pool by a merge patch.
func (r *roller) pool(t *testing.T, patch string) {
	t.Helper()
	p := &v1alpha1.MachineDeployment{}
	p.Name, p.Namespace = rolledPool, MachineNamespace
	require.NoError(t, r.Client.Patch(r.ctx, p, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// settle follows the machines until all are at the wish, one of them stands by, and no place is taken.
func (r *roller) settle(t *testing.T, w Wish) {
	t.Helper()
	begin := time.Now()
	require.NoError(t, r.Follow(r.ctx, func(machines []v1alpha1.Machine) (bool, error) {
		standing := ""
		for i := range machines {
			m := &machines[i]
			switch {
			case !meets(m, w) || !judged(m):
				return false, nil
			case m.Status.Phase == v1alpha1.PhaseStandby && standing == "":
				standing = m.Name
			case m.Status.Phase != v1alpha1.PhaseReady:
				return false, nil
			}
		}
		l := &v1alpha1.Ledger{}
		if r.Client.Get(r.ctx, types.NamespacedName{Namespace: MachineNamespace, Name: v1alpha1.LedgerName}, l) != nil {
			return false, nil //nolint:nilerr // asked again until it answers
		}
		r.spare = standing
		return standing != "" && len(l.Spec.Slots) == 0, nil
	}, func(c Change) {
		r.Say("  %6s  %-10s %s", time.Since(begin).Round(time.Second), c.Machine.Name, Line(&c.Machine))
	}))
	r.Say("%s stands by", r.spare)
}

// judged says that what is said of the machine is said of its spec as it is now.
func judged(m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
	return c != nil && c.ObservedGeneration == m.Generation
}

// worked is how many operations each host has had since the last time, by its own record.
func (r *roller) worked(t *testing.T) map[string][]apply.Outcome {
	t.Helper()
	out := map[string][]apply.Outcome{}
	for _, h := range r.Fleet.Hosts() {
		all := operationsOf(r.ctx, t, h)
		slices.SortFunc(all, func(a, b apply.Outcome) int { return a.Operation.StartTime.Compare(b.Operation.StartTime.Time) })
		out[h.Name()] = all[r.operations[h.Name()]:]
		r.operations[h.Name()] = len(all)
	}
	return out
}

func (r *roller) table(t *testing.T, grants map[string][]string) {
	t.Helper()
	machines, err := r.Machines(r.ctx)
	require.NoError(t, err)
	PrintTimings(r.Out, machines)
	tw := tabwriter.NewWriter(r.Out, 0, 4, 3, ' ', 0)
	fmt.Fprintln(tw, "NODE\tCORDONED UNDER")
	for _, m := range machines {
		fmt.Fprintf(tw, "%s\t%s\n", m.Name, strings.Join(grants[m.Name], ", "))
	}
	require.NoError(t, tw.Flush())
}

func (r *roller) standsBy(t *testing.T) {
	r.pool(t, `{"spec":{"replicas":3,"strategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}}}`)
	r.settle(t, From)
	r.worked(t)
	assert.Empty(t, r.podsOn(t, r.spare), "it is empty")
}

// podsOn are the application's pods on a node.
func (r *roller) podsOn(t *testing.T, node string) []string {
	t.Helper()
	out, err := r.Kubectl(r.ctx, "get", "pods", "-n", AppNamespace, "--field-selector=spec.nodeName="+node, "-o", "jsonpath={.items[*].metadata.name}")
	require.NoError(t, err)
	return strings.Fields(out)
}

var rolledTo = Wish{Kubernetes: To.Kubernetes, Containerd: From.Containerd}

func (r *roller) nextMinor(t *testing.T) {
	w := r.watch(t)
	require.NoError(t, r.Edit(r.ctx, rolledTo))
	r.settle(t, rolledTo)
	grants := r.judge(t, w)
	r.table(t, grants)
	for name, operations := range r.worked(t) {
		require.Len(t, operations, 1, "operations of %s", name)
		assert.Equal(t, apply.Successful, operations[0].State, name)
	}
	for _, h := range r.Fleet.Hosts() {
		assert.LessOrEqual(t, len(grants[h.Name()]), 1, "%s was cordoned under %v", h.Name(), grants[h.Name()])
	}
	log, err := r.Fleet.AuditLog()
	require.NoError(t, err)
	v := log.Judge(audit.Rules{Drainers: []string{"system:serviceaccount:" + SystemNamespace + ":refit-coordinator"}})
	assert.Empty(t, v.Violations)
}

// stuckHook lets the machine go that stands by, and stops whoever comes next.
const stuckHook = `mkdir -p /etc/refit/hooks.d && cat >/etc/refit/hooks.d/raid-check <<'EOF'
#!/bin/sh
[ "$REFIT_MACHINE" = %s ] && exit 0
echo "md0 is degraded"
exit 1
EOF
chmod 0755 /etc/refit/hooks.d/raid-check`

func (r *roller) stuck(t *testing.T) {
	for _, h := range r.Fleet.Hosts() {
		if !h.ControlPlane() {
			r.exec(t, h.Name(), "sh", "-c", fmt.Sprintf(stuckHook, r.spare))
		}
	}
	first := r.spare
	w := r.watch(t)
	r.pool(t, fmt.Sprintf(`{"spec":{"template":{"spec":{"hooks":{"preApply":["raid-check"]},"versions":{"containerRuntime":{"version":%q}}}}}}`, To.Containerd))
	d := r.awaitPaused(t)
	r.failed = r.whoFailed(t)
	require.NotEqual(t, first, r.failed)

	short, err := r.Kubectl(r.ctx, "get", "machd", "-n", MachineNamespace)
	require.NoError(t, err)
	wide, err := r.Kubectl(r.ctx, "get", "machd", rolledPool, "-n", MachineNamespace, "-o", "wide")
	require.NoError(t, err)
	status, err := r.Refit(r.ctx, "status")
	require.NoError(t, err)
	r.Say("$ kubectl get machd\n%s\n$ kubectl get machd %s -o wide\n%s\n$ kubectl refit status\n%s", short, rolledPool, wide, status)
	assert.Contains(t, short, "FailureThresholdReached")
	assert.Contains(t, wide, r.failed+" (HookFailed)", "who and why")
	assert.EqualValues(t, 1, d.Status.Failed)

	time.Sleep(20 * time.Second) // whatever would be begun has begun
	for name, operations := range r.worked(t) {
		switch name {
		case first:
			require.Len(t, operations, 1, name)
			assert.Equal(t, apply.Successful, operations[0].State, name)
		case r.failed:
			require.Len(t, operations, 1, name)
			assert.Equal(t, apply.RolledBack, operations[0].State, name)
		default:
			assert.Empty(t, operations, "%s is not touched", name)
		}
	}
	grants := r.judge(t, w)
	for _, h := range r.Fleet.Hosts() {
		if h.Name() != r.failed && h.Name() != first {
			assert.Empty(t, grants[h.Name()], h.Name())
		}
	}
}

// awaitPaused waits until the pool has paused itself and has nobody at work.
func (r *roller) awaitPaused(t *testing.T) *v1alpha1.MachineDeployment {
	t.Helper()
	d := &v1alpha1.MachineDeployment{}
	key := types.NamespacedName{Namespace: MachineNamespace, Name: rolledPool}
	begin := time.Now()
	require.NoError(t, r.Follow(r.ctx, func([]v1alpha1.Machine) (bool, error) {
		if r.Client.Get(r.ctx, key, d) != nil {
			return false, nil //nolint:nilerr // asked again until it answers
		}
		return d.Status.Failed > 0 && d.Status.InFlight == 0, nil
	}, func(c Change) {
		r.Say("  %6s  %-10s %s", time.Since(begin).Round(time.Second), c.Machine.Name, Line(&c.Machine))
	}))
	return d
}

func (r *roller) whoFailed(t *testing.T) string {
	t.Helper()
	machines, err := r.Machines(r.ctx)
	require.NoError(t, err)
	at := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return m.Status.RolloutFailure != nil })
	require.GreaterOrEqual(t, at, 0)
	assert.Contains(t, machines[at].Status.RolloutFailure.Message, "md0 is degraded")
	return machines[at].Name
}

func (r *roller) undone(t *testing.T) {
	w := r.watch(t)
	out, err := r.Refit(r.ctx, "undo", rolledPool, "--yes")
	require.NoError(t, err, out)
	r.Say("$ kubectl refit undo %s --yes\n%s", rolledPool, out)
	r.settle(t, rolledTo)
	grants := r.judge(t, w)
	r.table(t, grants)
	back := 0
	for name, operations := range r.worked(t) {
		for _, o := range operations {
			assert.Equal(t, apply.Successful, o.State, name)
			back++
		}
	}
	assert.Equal(t, 1, back, "only the machine that had gone on goes back")
	machines, err := r.Machines(r.ctx)
	require.NoError(t, err)
	for i := range machines {
		assert.Nil(t, machines[i].Status.RolloutFailure, machines[i].Name)
		assert.Nil(t, machines[i].Spec.Hooks, machines[i].Name)
	}
	history, err := r.Refit(r.ctx, "history", rolledPool)
	require.NoError(t, err)
	r.Say("$ kubectl refit history %s\n%s", rolledPool, history)
}

func (r *roller) leaderKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("REFIT_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	r.Say("the moments are those of REFIT_SEED=%d", seed)
	w := r.watch(t)
	r.pool(t, fmt.Sprintf(`{"spec":{"template":{"spec":{"versions":{"containerRuntime":{"version":%q}}}}}}`, To.Containerd))
	k := r.startLeaderKiller(r.ctx, t, seed)
	r.untilRolled(t)
	kills := k.Stop()
	r.Say("%d leaders were killed:\n  %s", len(kills), strings.Join(kills, "\n  "))
	assert.GreaterOrEqual(t, len(kills), 3)
	r.untilRolled(t) // and whoever leads last leaves nothing undone
	grants := r.judge(t, w)
	r.table(t, grants)
	r.grantedOnce(t, grants)
	log, err := r.Fleet.AuditLog()
	require.NoError(t, err)
	for pod, n := range evictionsOf(log.Between(w.began, time.Now())) {
		assert.Equal(t, 1, n, "evictions of %s", pod)
	}
}

func (r *roller) untilRolled(t *testing.T) {
	t.Helper()
	machines, err := r.Machines(r.ctx)
	require.NoError(t, err)
	control := machines[slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return slices.Contains(m.Spec.Roles, v1alpha1.RoleControlPlane) })]
	begin := time.Now()
	require.NoError(t, r.Follow(r.ctx, func(machines []v1alpha1.Machine) (bool, error) {
		standing := 0
		for i := range machines {
			m := &machines[i]
			if m.Name == control.Name {
				continue
			}
			if !meets(m, To) || !judged(m) {
				return false, nil
			}
			if m.Status.Phase == v1alpha1.PhaseStandby {
				standing++
			}
		}
		l := &v1alpha1.Ledger{}
		key := types.NamespacedName{Namespace: MachineNamespace, Name: v1alpha1.LedgerName}
		return standing == 1 && r.Client.Get(r.ctx, key, l) == nil && len(l.Spec.Slots) == 0, nil
	}, func(c Change) {
		r.Say("  %6s  %-10s %s", time.Since(begin).Round(time.Second), c.Machine.Name, Line(&c.Machine))
	}))
}

// grantedOnce holds the hosts' own records against the Machines' and the nodes' cordons: what was granted was done once
// and is in the history, and nothing was cordoned for anything else.
func (r *roller) grantedOnce(t *testing.T, grants map[string][]string) {
	t.Helper()
	machines, err := r.Machines(r.ctx)
	require.NoError(t, err)
	worked := r.worked(t)
	for i := range machines {
		m := &machines[i]
		if slices.Contains(m.Spec.Roles, v1alpha1.RoleControlPlane) {
			assert.Empty(t, worked[m.Name], m.Name)
			continue
		}
		require.Len(t, worked[m.Name], 1, "operations of %s", m.Name)
		id := worked[m.Name][0].Operation.ID
		assert.Equal(t, apply.Successful, worked[m.Name][0].State, m.Name)
		require.NotEmpty(t, m.Status.History, m.Name)
		assert.Equal(t, id, m.Status.History[0].ID, "%s: its operation is in its history", m.Name)
		for _, grant := range grants[m.Name] {
			assert.Equal(t, id, grant, "%s was cordoned for its one operation only", m.Name)
		}
	}
}

// evictionsOf counts the evictions that were accepted, by pod and its uid.
func evictionsOf(log audit.Log) map[string]int {
	out := map[string]int{}
	for i := range log {
		e := &log[i]
		if e.ObjectRef.Resource != "pods" || e.ObjectRef.Subresource != "eviction" || e.Stage != "ResponseComplete" || !e.Succeeded() {
			continue
		}
		var asked struct {
			DeleteOptions struct{ Preconditions struct{ UID string } }
		}
		_ = json.Unmarshal(e.RequestObject, &asked)
		out[e.ObjectRef.Namespace+"/"+e.ObjectRef.Name+" "+asked.DeleteOptions.Preconditions.UID]++
	}
	return out
}
