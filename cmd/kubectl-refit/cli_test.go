package main

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

const image = "registry.example.com/refit-coordinator:v9"

// desk is an operator's desk: a kubeconfig and the command.
type desk struct {
	*testing.T
	kubeconfig string
	kube       kubernetes.Interface
	client     client.Client
}

func newDesk(t *testing.T) *desk {
	srv := apiserver.Start(t)
	srv.StartControllers(t, "garbage-collector-controller", "namespace-controller", "serviceaccount-controller")
	d := &desk{T: t, kubeconfig: srv.WriteKubeconfig(t, t.TempDir(), "kubernetes-admin", "system:masters")}
	var err error
	d.kube, err = kubernetes.NewForConfig(srv.Admin())
	require.NoError(t, err)
	c := &command{flags: genericclioptions.NewConfigFlags(true)}
	c.flags.KubeConfig = &d.kubeconfig
	d.client, err = c.client()
	require.NoError(t, err)
	return d
}

// refit runs the command as a shell would, and returns what it printed and its exit code.
func (d *desk) refit(args ...string) (out, errs string, code int) {
	var stdout, stderr bytes.Buffer
	root := newRoot(streams{out: &stdout, err: &stderr})
	root.SetArgs(append([]string{"--kubeconfig", d.kubeconfig, "--cache-dir", d.TempDir()}, args...))
	ctx, cancel := context.WithTimeout(d.Context(), time.Minute)
	defer cancel()
	if err := root.ExecuteContext(ctx); err != nil {
		return stdout.String(), stderr.String() + err.Error(), exitCode(err)
	}
	return stdout.String(), stderr.String(), 0
}

func (d *desk) ok(args ...string) string {
	d.Helper()
	out, errs, code := d.refit(args...)
	require.Zero(d, code, "%v: %s", args, errs)
	return out
}

func (d *desk) refused(code int, args ...string) string {
	d.Helper()
	out, errs, got := d.refit(args...)
	require.Equal(d, code, got, "%v: %s%s", args, out, errs)
	return errs
}

// node joins a host, and where it has an API server also the static pod's mirror.
func (d *desk) node(name, apiServer string) {
	d.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if apiServer != "" {
		n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
		n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	}
	n, err := d.kube.CoreV1().Nodes().Create(d.Context(), n, metav1.CreateOptions{})
	require.NoError(d, err)
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://1.7.35"}
	_, err = d.kube.CoreV1().Nodes().UpdateStatus(d.Context(), n, metav1.UpdateOptions{})
	require.NoError(d, err)
	if apiServer == "" {
		return
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-apiserver-" + name, Namespace: "kube-system",
			Labels:          map[string]string{"component": "kube-apiserver", "tier": "control-plane"},
			Annotations:     map[string]string{corev1.MirrorPodAnnotationKey: "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: n.UID, Controller: yes()}},
		},
		Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "kube-apiserver", Image: apiServer}}},
	}
	require.Eventually(d, func() bool {
		_, err = d.kube.CoreV1().Pods("kube-system").Create(d.Context(), p, metav1.CreateOptions{})
		return err == nil
	}, 10*time.Second, 50*time.Millisecond)
}

func sortLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	sort.Strings(lines)
	return strings.Join(lines, "")
}

func yes() *bool { b := true; return &b }

// rollOut plays the deployment controller and the kubelets: the coordinator comes up.
func (d *desk) rollOut() {
	for d.Context().Err() == nil {
		dep, err := d.kube.AppsV1().Deployments("refit-system").Get(d.Context(), "refit-coordinator", metav1.GetOptions{})
		if err == nil {
			n := *dep.Spec.Replicas
			patch, _ := json.Marshal(map[string]any{"status": appsv1.DeploymentStatus{
				ObservedGeneration: dep.Generation, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n, ReadyReplicas: n,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
			}})
			_, _ = d.kube.AppsV1().Deployments("refit-system").Patch(d.Context(), dep.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestFromAnEmptyClusterToAdoptedMachinesAndBack(t *testing.T) {
	d := newDesk(t)

	assert.Contains(t, d.refused(usage.ExitRefused, "adopt"), "there is no node to adopt")
	d.node("cp-1", "registry.k8s.io/kube-apiserver:v1.36.3")
	d.node("worker-1", "")
	assert.Contains(t, d.refused(usage.ExitRefused, "adopt", "--apply"), "namespace refit does not exist: run kubectl refit install")

	errs := d.refused(usage.ExitFault, "install", "--coordinator-image", image, "--timeout", "15s")
	assert.Contains(t, errs, "waiting for Deployment refit-system/refit-coordinator: it has")
	go d.rollOut()
	out := d.ok("install", "--coordinator-image", image)
	assert.Contains(t, out, "CustomResourceDefinition machines.refit.dev applied")
	assert.Contains(t, out, "ValidatingAdmissionPolicy refit-agent applied")
	assert.Contains(t, out, "Deployment refit-system/refit-coordinator is available")
	dep, err := d.kube.AppsV1().Deployments("refit-system").Get(t.Context(), "refit-coordinator", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, image, dep.Spec.Template.Spec.Containers[0].Image)
	d.ok("install", "--coordinator-image", image)

	_, errs, code := d.refit("status")
	assert.Zero(t, code)
	assert.Contains(t, errs, "There are no machines in namespace refit: kubectl refit adopt --apply")
	assert.Contains(t, d.ok("adopt"), "name: workers")
	var machines v1alpha1.MachineList
	require.NoError(t, d.client.List(t.Context(), &machines))
	assert.Empty(t, machines.Items, "printing creates nothing")

	out = d.ok("adopt", "--apply")
	assert.Equal(t, "Machine cp-1 created\nMachine worker-1 created\nMachineDeployment control-plane created\nMachineDeployment workers created\n", sortLines(out))
	assert.Equal(t, "nothing to do: every node is adopted already\n", d.ok("adopt", "--apply"))
	d.adoptedAsItRuns()
	assert.Regexp(t, `worker-1 +Worker +- +- +- +- +- +AgentSilent: the agent of this host has never reported`, d.ok("status"))
	assert.Regexp(t, `workers .*NotSeen: generation 1 not yet seen; there is no coordinator`, d.ok("status"))

	d.uninstall()
}

func (d *desk) adoptedAsItRuns() {
	d.Helper()
	var m v1alpha1.Machine
	require.NoError(d, d.client.Get(d.Context(), client.ObjectKey{Namespace: "refit", Name: "cp-1"}, &m))
	assert.Equal(d, []v1alpha1.Role{v1alpha1.RoleControlPlane}, m.Spec.Roles)
	var pool v1alpha1.MachineDeployment
	require.NoError(d, d.client.Get(d.Context(), client.ObjectKey{Namespace: "refit", Name: "control-plane"}, &pool))
	assert.Equal(d, &v1alpha1.Versions{
		Kubelet: "v1.36.3", ControlPlane: "v1.36.3", ContainerRuntime: &v1alpha1.ContainerRuntime{Name: "containerd", Version: "1.7.35"},
	}, pool.Spec.Template.Spec.Versions)
}

func (d *desk) uninstall() {
	d.Helper()
	ledger := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "refit", Namespace: "refit"}, Spec: v1alpha1.LedgerSpec{Slots: []v1alpha1.Slot{{
		Machine: "worker-1", Disruption: v1alpha1.DisruptionDrain, State: v1alpha1.SlotGranted, ReservedTime: metav1.Now(),
	}}}}
	require.NoError(d, d.client.Create(d.Context(), ledger))
	assert.Contains(d, d.refused(usage.ExitRefused, "uninstall"), "machines in flight: refit/worker-1")
	ledger.Spec.Slots = nil
	require.NoError(d, d.client.Update(d.Context(), ledger))

	d.finalized("worker-1")
	assert.Contains(d, d.refused(usage.ExitFault, "uninstall", "--delete-data", "--timeout", "15s"),
		"left: Machine refit/worker-1; their finalizers are taken off by the coordinator", "it is the coordinator's while there is one")
	stays := "Machines and pools, their CRDs and the namespaces stay: kubectl refit uninstall --delete-data takes them away\n"
	out := d.ok("uninstall")
	assert.Contains(d, out, "Deployment refit-system/refit-coordinator deleted")
	assert.True(d, strings.HasSuffix(out, stays), out)
	assert.Equal(d, "nothing to do: the coordinator and its policies are not in this cluster\n"+stays, d.ok("uninstall"))
	assert.Regexp(d, `worker-1 +Worker +Deleting `, d.ok("status"))

	ledger.Spec.Slots = []v1alpha1.Slot{{Machine: "worker-1", Disruption: v1alpha1.DisruptionDrain, State: v1alpha1.SlotGranted, ReservedTime: metav1.Now()}}
	require.NoError(d, d.client.Update(d.Context(), ledger))
	assert.Contains(d, d.refused(usage.ExitRefused, "uninstall", "--delete-data"), "machines in flight: refit/worker-1")
	var held v1alpha1.Machine
	require.NoError(d, d.client.Get(d.Context(), client.ObjectKey{Namespace: "refit", Name: "worker-1"}, &held))
	assert.Equal(d, []string{v1alpha1.FinalizerMachine}, held.Finalizers)
	ledger.Spec.Slots = nil
	require.NoError(d, d.client.Update(d.Context(), ledger))

	out = d.ok("uninstall", "--delete-data", "--timeout", "2m")
	assert.Contains(d, out, "Machine refit/worker-1 released, in the absent coordinator's stead\n")
	assert.Equal(d, "nothing to do: the coordinator and its policies are not in this cluster\n", d.ok("uninstall"))
	_, err := d.kube.AppsV1().Deployments("refit-system").Get(d.Context(), "refit-coordinator", metav1.GetOptions{})
	assert.True(d, client.IgnoreNotFound(err) == nil && err != nil, "%v", err)
	assert.Contains(d, d.refused(usage.ExitRefused, "status"), "Refit is not installed in this cluster")
}

// finalized gives a Machine the finalizer that the coordinator gives it.
func (d *desk) finalized(name string) {
	d.Helper()
	m := &v1alpha1.Machine{}
	require.NoError(d, d.client.Get(d.Context(), client.ObjectKey{Namespace: "refit", Name: name}, m))
	m.Finalizers = append(m.Finalizers, v1alpha1.FinalizerMachine)
	require.NoError(d, d.client.Update(d.Context(), m))
}

func TestMistakesOnTheCommandLineSayWhatToDo(t *testing.T) {
	d := &desk{T: t, kubeconfig: "/nonexistent/kubeconfig"}
	for name, tc := range map[string]struct {
		args    []string
		code    int
		message string
	}{
		"no image":        {[]string{"install"}, usage.ExitCode, "--coordinator-image is required: name the image that the cluster's nodes can pull"},
		"unknown flag":    {[]string{"adopt", "--aply"}, usage.ExitCode, "unknown flag: --aply (see kubectl refit adopt --help)"},
		"argument":        {[]string{"adopt", "worker-1"}, usage.ExitCode, "kubectl refit adopt takes no arguments, got [\"worker-1\"]"},
		"unknown format":  {[]string{"adopt", "-o", "xml"}, usage.ExitCode, `--output "xml" is not known: it is yaml or json`},
		"unknown command": {[]string{"adpot"}, usage.ExitCode, `unknown command "adpot" for "kubectl refit"`},
		"no kubeconfig":   {[]string{"status"}, usage.ExitFault, "/nonexistent/kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, d.refused(tc.code, tc.args...), tc.message)
		})
	}
	assert.Equal(t, "dev\n", d.ok("version"))
	assert.Contains(t, d.ok("install", "--coordinator-image", image, "--dry-run"), "image: "+image)
	assert.Contains(t, d.ok("install", "--coordinator-image", image, "--dry-run", "-o", "json"), `"kind": "List"`)
}
