package coordinator

import (
	"context"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/integration/apiserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyPart applies what `kubectl refit install --part` would.
func applyPart(t *testing.T, to *apiserver.Server, part string) {
	t.Helper()
	cmd := exec.Command(cli, "install", "--part", part, "--coordinator-image", "refit-coordinator:dev", "--dry-run", "-o", "yaml")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, to.Apply(context.Background(), out))
}

// Two API servers, each with an etcd of its own, and each with the part of the roles that belongs there.
func TestMachinesAndNodesMayBeInTwoClusters(t *testing.T) {
	management, workload := apiserver.Start(t, apiserver.WithAudit(audit.Bodies)), apiserver.Start(t, apiserver.WithAudit(audit.Bodies))
	applyPart(t, management, "management")
	applyPart(t, workload, "workload")
	require.NoError(t, workload.Apply(context.Background(), []byte(defaultAccount)))
	w := newWorldOf(t, management, workload)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	for _, name := range []string{"w1", "w2"} {
		w.host(name, "workers", v1alpha1.RoleWorker)
	}
	// A node of the management cluster that has the name of a workload cluster's.
	namesake := &corev1.Node{}
	namesake.Name = "w1"
	require.NoError(t, w.admin.Create(context.Background(), namesake))
	w.pod("app", "w1", true)
	// Somebody else's coordinator in the workload cluster: a pod like any other.
	w.pod("stranger", "w2", true)
	labels := []byte(`{"metadata":{"labels":{"app.kubernetes.io/name":"refit-coordinator"}}}`)
	stranger := &corev1.Pod{}
	stranger.Namespace, stranger.Name = "default", "stranger"
	require.NoError(t, w.workload.Patch(context.Background(), stranger, client.RawPatch("application/merge-patch+json", labels)))
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.untilUpToDate("w1", "w2")
	for _, name := range []string{"w1", "w2"} {
		assert.Len(t, w.hosts[name].RanUnder(), 1, name)
		assert.False(t, w.node(name).Spec.Unschedulable, name)
		assert.Equal(t, string(w.node(name).UID), w.machine(name).Status.NodeRef.UID, "the workload cluster's node")
	}
	assert.False(t, w.podExists("app"))
	assert.False(t, w.podExists("stranger"))
	got := &corev1.Node{}
	require.NoError(t, w.admin.Get(context.Background(), client.ObjectKey{Name: "w1"}, got))
	assert.Equal(t, namesake.ResourceVersion, got.ResourceVersion, "the management cluster's own node is nobody's business")

	for server, log := range map[string]audit.Log{"management": audit.Read(t, management.AuditLog()), "workload": audit.Read(t, workload.AuditLog())} {
		asked := map[string]bool{}
		for _, e := range log.By(coordinatorUser) {
			asked[e.ObjectRef.Resource] = true
			assert.NotEqual(t, 403, e.ResponseStatus.Code, "%s: %s %s", server, e.Verb, e.RequestURI)
		}
		assert.Equal(t, server == "workload", asked["nodes"], "%s is asked for Nodes", server)
		assert.Equal(t, server == "management", asked["machines"], "%s is asked for Machines", server)
		assert.Equal(t, server == "management", asked["ledgers"], "%s is asked for ledgers", server)
	}
	lease := w.leases(management)
	assert.Equal(t, []string{"refit-coordinator-refit"}, lease, "a leader of its own")
}

func TestAnOperatorsCommandsLookAtTheNodesOfTheWorkloadCluster(t *testing.T) {
	management, workload := apiserver.Start(t, apiserver.WithAudit(audit.Bodies)), apiserver.Start(t, apiserver.WithAudit(audit.Bodies))
	applyPart(t, management, "management")
	applyPart(t, workload, "workload")
	w := newWorldOf(t, management, workload)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	w.host("w1", "workers", v1alpha1.RoleWorker)
	w.host("w2", "workers", v1alpha1.RoleWorker)
	namesake := &corev1.Node{}
	namesake.Name, namesake.Spec.Unschedulable = "w1", true // of the management cluster, and nobody's business
	require.NoError(t, w.admin.Create(context.Background(), namesake))
	w.pool("workers", workerAt(oldK8s))
	w.start()
	w.untilUpToDate("w1", "w2")
	w.untilRevisions("workers", 1)
	w.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Versions.Kubelet, d.Spec.Paused = newK8s, true
	})
	w.untilRevisions("workers", 1, 2)
	w.until("w1 is paused", func() bool { return w.condition("w1", v1alpha1.ConditionWaiting).Reason == "Paused" })

	const operator = "operator"
	w.kubeconfig = management.WriteKubeconfig(t, t.TempDir(), operator, "system:masters")
	nodes := workload.WriteKubeconfig(t, t.TempDir(), operator, "system:masters")
	cordonGate := func(args ...string) string {
		out, _ := w.refitOK(append([]string{"why", "w1"}, args...)...)
		return regexp.MustCompile(`(?m)^cordoned +(\w+)`).FindStringSubmatch(out)[1]
	}
	assert.Equal(t, "veto", cordonGate(), "the namesake is cordoned")
	began := time.Now()
	assert.Equal(t, "pass", cordonGate("--workload-kubeconfig", nodes))
	out, _ := w.refitOK("plan", "--workload-kubeconfig", nodes)
	assert.Regexp(t, `(?m)^w1 `, out)
	out, _ = w.refitOK("undo", "workers", "--dry-run=server", "--workload-kubeconfig", nodes)
	assert.Contains(t, out, "rolled back to revision 1")
	out, _ = w.refitOK("forecast", "w2", "--workload-kubeconfig", nodes)
	assert.Regexp(t, `(?m)^w2 `, out)
	out, _ = w.refitOK("drain", "w2", "--dry-run=server", "--workload-kubeconfig", nodes)
	assert.Contains(t, out, "w2")
	_, errs := w.refitOK("adopt", "--workload-kubeconfig", nodes)
	assert.Contains(t, errs, "Adopted already: 3 nodes")
	for server, log := range map[string]audit.Log{"management": audit.Read(t, management.AuditLog()), "workload": audit.Read(t, workload.AuditLog())} {
		asked := map[string]bool{}
		for _, e := range log.By(operator).Between(began, time.Now()) {
			asked[e.ObjectRef.Resource] = true
		}
		assert.Equal(t, server == "workload", asked["nodes"], "%s is asked for Nodes", server)
		assert.Equal(t, server == "workload", asked["pods"], "%s is asked for pods", server)
		assert.Equal(t, server == "management", asked["machines"], "%s is asked for Machines", server)
	}
	_, errs, code := w.refit("why", "w1", "--workload-kubeconfig", "/nonexistent")
	assert.Equal(t, usage.ExitCode, code)
	assert.Contains(t, errs, "--workload-kubeconfig /nonexistent")
}

func (w *world) leases(of *apiserver.Server) []string {
	w.t.Helper()
	list := &coordinationv1.LeaseList{}
	require.NoError(w.t, newClient(w.t, of.Admin()).List(context.Background(), list, client.InNamespace("refit-system")))
	var names []string
	for _, l := range list.Items {
		names = append(names, l.Name)
	}
	return names
}

// The workload cluster's API server is away when the coordinator begins, and again later, as it is while its only
// control plane is upgraded.
func TestACoordinatorBesideTheClusterOutlivesItsAPIServer(t *testing.T) {
	management, workload := apiserver.Start(t), apiserver.Start(t)
	applyPart(t, management, "management")
	applyPart(t, workload, "workload")
	w := newWorldOf(t, management, workload)
	h := w.host("cp1", "cp", v1alpha1.RoleControlPlane)
	h.set(func(h *host) { h.WorkTime = 8 * time.Second })
	w.host("w1", "", v1alpha1.RoleWorker)
	w.pool("cp", planeAt(newK8s))
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	require.NoError(t, workload.KillAPI())
	w.start()
	time.Sleep(2 * time.Second)
	require.NoError(t, workload.StartAPI(ctx))
	w.until("the host works", func() bool { s := w.slot("cp1"); return s != nil && s.State == v1alpha1.SlotAccepted })
	epoch := w.ledger().Epoch
	require.NoError(t, workload.KillAPI())
	time.Sleep(6 * time.Second) // longer than the lease, which is in the other cluster
	require.NoError(t, workload.StartAPI(ctx))
	w.untilUpToDate("cp1")
	assert.Len(t, h.RanUnder(), 1)
	assert.Equal(t, epoch, w.ledger().Epoch, "it has led all the time")
	assert.False(t, w.node("cp1").Spec.Unschedulable)
}
