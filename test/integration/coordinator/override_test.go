package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/audit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubectl applies a manifest as an operator would.
func (w *world) kubectl(manifest string, args ...string) {
	w.t.Helper()
	kubeconfig := server.WriteKubeconfig(w.t, w.t.TempDir(), "kubernetes-admin", "system:masters")
	cmd := exec.Command(server.Kubectl(w.t), append([]string{"--kubeconfig", kubeconfig, "apply", "-f", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, "%s", out)
}

func wishOf(name, kubelet string) string {
	return fmt.Sprintf(`{"apiVersion":"refit.dev/v1alpha1","kind":"Machine","metadata":{"name":%q,"namespace":%q},"spec":{"roles":["Worker"],"versions":{"kubelet":%q}}}`, name, namespace, kubelet)
}

// heal is a GitOps tool: it applies its source again and again, and takes what it is given.
func (w *world) heal(name, kubelet string) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			source := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			_ = w.admin.Patch(ctx, source, client.RawPatch(types.ApplyPatchType, []byte(wishOf(name, kubelet))), client.FieldOwner("flux"), client.ForceOwnership)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// specWrites counts what the coordinator has written into the specs of Machines.
func specWrites(t *testing.T, from, until time.Time) (n int) {
	for _, e := range audit.Read(t, server.AuditLog()).By(coordinatorUser).Between(from, until).Once() {
		if e.ObjectRef.Resource == "machines" && e.ObjectRef.Subresource == "" && (e.Verb == "patch" || e.Verb == "update") {
			n++
		}
	}
	return n
}

func TestWhoeverSetsAFieldKeepsItUntilItIsReleased(t *testing.T) {
	w := fleetOfThree(t)
	w.host("w4", "workers", v1alpha1.RoleWorker)
	w.kubectl(wishOf("w1", oldK8s))
	w.kubectl(wishOf("w2", oldK8s), "--server-side", "--field-manager=argocd", "--force-conflicts")
	put := w.machine("w3")
	put.Spec.Versions = &v1alpha1.Versions{Kubelet: oldK8s}
	require.NoError(t, w.admin.Update(context.Background(), put, client.FieldOwner("kubectl-edit")))
	stop := w.heal("w4", oldK8s)
	w.until("the GitOps tool has applied its source", func() bool { return w.machine("w4").Spec.Versions != nil })
	managers := map[string]string{"w1": "kubectl-client-side-apply", "w2": "argocd", "w3": "kubectl-edit", "w4": "flux"}

	w.pool("workers", workerAt(newK8s), allowTwo)
	began := time.Now()
	w.start()
	for name, manager := range managers {
		w.until("the override of "+name+" is named", func() bool {
			c := w.condition(name, v1alpha1.ConditionOverridden)
			return c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "spec.versions.kubelet (owned by "+manager+")")
		})
	}
	settled := time.Now()
	require.Positive(t, specWrites(t, began, settled), "the log has what it is asked for")
	time.Sleep(4 * time.Second)
	assert.Zero(t, specWrites(t, settled.Add(time.Second), time.Now()), "there is no war of writes, however often the tool heals")
	for name := range managers {
		assert.EqualValues(t, oldK8s, w.machine(name).Spec.Versions.Kubelet, name)
	}

	_, errs, code := w.refit("release", "w1", "spec.paused")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "spec.paused of machine w1 is not overridden: these fields are: spec.versions.kubelet")
	out, errs := w.refitOK("release", "w1", "--dry-run=server")
	assert.Equal(t, "machine.refit.dev/w1 released (server dry run)\n", out)
	assert.Contains(t, errs, "spec.versions.kubelet goes back from kubectl-client-side-apply to the template of pool workers")
	stop()
	require.True(t, claims(w.machine("w2"), "argocd", "f:roles"))
	for name := range managers {
		before := w.machine(name)
		w.refitOK("release", name, "versions.kubelet")
		w.until(name+" follows its pool", func() bool {
			return string(w.machine(name).Spec.Versions.Kubelet) == newK8s && w.condition(name, v1alpha1.ConditionOverridden).Type == ""
		})
		assert.Equal(t, before.Spec.Roles, w.machine(name).Spec.Roles)
		assert.Equal(t, claims(before, managers[name], "f:roles"), claims(w.machine(name), managers[name], "f:roles"), "%s: every other claim stays", name)
	}
	out, _ = w.refitOK("release", "w1")
	assert.Equal(t, "machine.refit.dev/w1 not released: no field of it is overridden\n", out)
}

func claims(m *v1alpha1.Machine, manager, field string) bool {
	for _, e := range m.ManagedFields {
		if e.Manager == manager && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"`+field+`"`)) {
			return true
		}
	}
	return false
}
