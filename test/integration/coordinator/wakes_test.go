package coordinator

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// docs: a ServiceAccount that a person has deleted is made anew, and every token of the old one is void.
func TestADeletedServiceAccountOfAHostIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.host("w1", "", v1alpha1.RoleWorker).set(func(h *host) { h.Kubelet = newK8s })
	cmd := exec.Command(program, "--lease-duration=5s", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--agent-identity=Both",
		"--kubeconfig="+w.server.WriteKubeconfig(w.t, w.dir, coordinatorUser, "system:serviceaccounts"))
	cmd.Stdout, cmd.Stderr, cmd.Env = w.logs, w.logs, append(os.Environ(), "POD_NAMESPACE=default")
	require.NoError(t, cmd.Start())
	w.mu.Lock()
	w.coordinator = cmd
	w.mu.Unlock()
	account := func() (*corev1.ServiceAccount, bool) {
		a := &corev1.ServiceAccount{}
		err := w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "refit-machine-w1"}, a)
		return a, err == nil
	}
	w.until("it is there, and the agent has reported", func() bool { _, is := account(); return is && w.machine("w1").Status.Phase == "Ready" })
	time.Sleep(3 * time.Second)
	a, _ := account()
	require.NoError(t, w.admin.Delete(context.Background(), a))
	require.Eventually(t, func() bool { _, is := account(); return is }, 15*time.Second, 100*time.Millisecond, "nothing brings a pass about: the host is locked out")
}

// w2's template is refused; a person takes w2 out of the way. The canary, w1, waits for that and for nothing else.
func TestARolloutGoesOnWhenTheMachineGoesWhoseTemplateWasRefused(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	w.host("w1", "workers", v1alpha1.RoleWorker)
	w.host("w2", "workers", v1alpha1.RoleWorker)
	w.host("w3", "workers", v1alpha1.RoleWorker)
	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "refuse-w2"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"refit.dev"}, APIVersions: []string{"*"}, Resources: []string{"machines"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "object.metadata.name != 'w2' || !has(object.spec.versions)", Message: "not w2"}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "refuse-w2"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "refuse-w2", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	} {
		require.NoError(t, w.admin.Create(context.Background(), o))
		t.Cleanup(func() { _ = w.admin.Delete(context.Background(), o) })
	}
	require.Eventually(t, func() bool {
		m := w.machine("w2")
		m.Spec.Versions = &v1alpha1.Versions{Kubelet: oldK8s}
		return w.admin.Update(context.Background(), m, client.DryRunAll) != nil
	}, patience, 100*time.Millisecond, "the policy is in force")
	w.hosts["w2"].set(func(h *host) { h.deaf = true })
	w.pool("workers", workerAt(newK8s), func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{Canary: &v1alpha1.Canary{Count: 1}}}
	})
	w.start()
	w.until("the template is refused", func() bool {
		return w.deploymentCondition("workers", v1alpha1.ConditionProgressing).Reason == "TemplateRefused" && w.condition("w1", v1alpha1.ConditionWaiting).Reason == "CanaryPending" &&
			w.condition("w3", v1alpha1.ConditionWaiting).Reason == "CanaryPending"
	})
	time.Sleep(3 * time.Second)
	require.NoError(t, w.admin.Delete(context.Background(), w.machine("w2")))
	w.until("it is told no more", func() bool {
		return w.deploymentCondition("workers", v1alpha1.ConditionProgressing).Reason != "TemplateRefused"
	})
	require.Eventually(t, func() bool {
		return w.slot("w1") != nil || w.condition("w1", v1alpha1.ConditionUpToDate).Status == "True"
	}, 20*time.Second, 100*time.Millisecond, "nobody has told the rollout")
}

// worldWithAnOverride has two workers; the kubelet of w1 is somebody else's wish.
func worldWithAnOverride(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	w.host("w1", "workers", v1alpha1.RoleWorker)
	w.host("w2", "workers", v1alpha1.RoleWorker)
	w.kubectl(wishOf("w1", oldK8s))
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("it is overridden", func() bool { return w.condition("w1", v1alpha1.ConditionOverridden).Status == "True" })
	return w
}

// Without a MachineDeployment no field is overridden.
func TestAMachineThatLeavesItsPoolIsOverriddenNoMore(t *testing.T) {
	w := worldWithAnOverride(t)
	m := w.machine("w1")
	m.Labels = map[string]string{"pool": "none"}
	require.NoError(t, w.admin.Update(context.Background(), m))
	require.Eventually(t, func() bool { return w.condition("w1", v1alpha1.ConditionOverridden).Status != "True" }, 15*time.Second, 100*time.Millisecond, "it is in no pool")
}

// What was said before stays, as with the skew, until the deployment was looked at.
func TestANewLeaderTakesNoOverrideBackThatStands(t *testing.T) {
	w := worldWithAnOverride(t)
	w.untilUpToDate("w2")
	since, epoch := w.condition("w1", v1alpha1.ConditionOverridden).LastTransitionTime, w.ledger().Epoch
	w.kill()
	gone := false
	w.start()
	w.until("the next one leads", func() bool {
		gone = gone || w.condition("w1", v1alpha1.ConditionOverridden).Status != "True"
		return w.ledger().Epoch > epoch
	})
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		gone = gone || w.condition("w1", v1alpha1.ConditionOverridden).Status != "True"
	}
	now := w.condition("w1", v1alpha1.ConditionOverridden).LastTransitionTime
	require.False(t, gone || !now.Equal(&since), "it was taken back (%t), and said anew: %s, then %s", gone, since, now)
}
