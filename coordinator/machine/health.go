package machine

import (
	"context"
	"fmt"
	"sync"

	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unhealthy says what still speaks against giving the machine back. The agent's report
// is a claim: the Node has to agree, its kubelet has to be alive after the operation,
// and the DaemonSets have to be well on it.
func (r *Reconciler) unhealthy(ctx context.Context, s *scope) ([]string, error) {
	var problems []string
	problems = append(problems, reportedVersions(s)...)
	node := s.node()
	if node == nil {
		if s.view.NeedsNode() {
			problems = append(problems, "the Node is gone")
		}
		return problems, nil
	}
	problems = append(problems, nodeAgrees(s)...)
	for _, look := range []func(context.Context, *scope) ([]string, error){r.lease, r.daemonSets} {
		more, err := look(ctx, s)
		if err != nil {
			return nil, err
		}
		problems = append(problems, more...)
	}
	return problems, nil
}

// reportedVersions compares the agent's report with the target of the hop.
func reportedVersions(s *scope) []string {
	a, v := s.status().Assignment, s.status().Versions
	if a == nil || a.ID != s.slot().AssignmentID || v == nil {
		return nil // the target is not known any more; the node's word has to do
	}
	var out []string
	differ := func(what, want, have string, same func(a, b string) bool) {
		if want != "" && !same(want, have) {
			out = append(out, fmt.Sprintf("the agent reports %s %s, and %s was wanted", what, have, want))
		}
	}
	differ("kubelet", string(a.Target.Kubelet), v.Kubelet, upgrade.SameKubernetes)
	if a.Target.ControlPlane != "" {
		have := ""
		if v.ControlPlane != nil {
			have = v.ControlPlane.APIServer
		}
		differ("API server", string(a.Target.ControlPlane), have, upgrade.SameKubernetes)
	}
	differ("etcd", string(a.Target.Etcd), v.Etcd, upgrade.SameRuntime)
	if rt := a.Target.ContainerRuntime; rt != nil {
		have := ""
		if v.ContainerRuntime != nil {
			have = v.ContainerRuntime.Version
		}
		differ("container runtime", string(rt.Version), have, upgrade.SameRuntime)
	}
	return out
}

// nodeAgrees compares the Node with the agent's report.
func nodeAgrees(s *scope) []string {
	node, v := s.node(), s.status().Versions
	var out []string
	if !node.Ready {
		out = append(out, "the Node is not ready: "+node.Message)
	}
	if v == nil {
		return out
	}
	if v.Kubelet != "" && !upgrade.SameKubernetes(v.Kubelet, node.KubeletVersion) {
		out = append(out, fmt.Sprintf("the Node says kubelet %s, the agent %s", node.KubeletVersion, v.Kubelet))
	}
	if rt := v.ContainerRuntime; rt != nil && rt.Version != "" && !upgrade.SameRuntime(rt.Version, node.RuntimeVersion) {
		out = append(out, fmt.Sprintf("the Node says container runtime %s, the agent %s %s", node.RuntimeVersion, rt.Name, rt.Version))
	}
	return out
}

// leases remembers, by grant, which renewal was seen first in Verifying. Only a later
// one proves that the kubelet lives after the operation; no two clocks are compared.
type leases struct {
	mu    sync.Mutex
	first map[string]string
}

func (l *leases) renewedSince(grantID, renewal string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = map[string]string{}
	}
	seen, known := l.first[grantID]
	if !known {
		l.first[grantID] = renewal
	}
	return known && seen != renewal
}

func (l *leases) forget(grantID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.first, grantID)
}

func (r *Reconciler) lease(ctx context.Context, s *scope) ([]string, error) {
	if s.slot().UncordonedTime != nil {
		return nil, nil // passed before
	}
	lease, err := r.Workload.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, s.node().Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return []string{"the node's lease is gone"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lease of Node %s: %w", s.node().Name, err)
	}
	renewal := lease.ResourceVersion
	if !r.leases.renewedSince(s.slot().GrantID, renewal) {
		return []string{"the kubelet has not renewed its lease since the operation"}, nil
	}
	return nil, nil
}

// daemonSets wants each pod of a DaemonSet on the node to be ready.
func (r *Reconciler) daemonSets(ctx context.Context, s *scope) ([]string, error) {
	pods, err := r.Workload.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + s.node().Name})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of Node %s: %w", s.node().Name, err)
	}
	var out []string
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOf(p)
		if owner == nil || owner.Kind != "DaemonSet" || p.DeletionTimestamp != nil || podReady(p) {
			continue
		}
		out = append(out, fmt.Sprintf("pod %s/%s of DaemonSet %s is not ready", p.Namespace, p.Name, owner.Name))
	}
	return out, nil
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
