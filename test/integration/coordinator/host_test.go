package coordinator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/fakehost"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// host is one simulated machine, with a kubelet and an agent that look every few milliseconds.
type host struct {
	*fakehost.Host
	w     *world
	roles []v1alpha1.Role
	done  sync.WaitGroup
	// Changed through set, as the rest.
	deaf      bool // the agent does nothing
	stuckPods bool // pods that are evicted do not end
}

func (w *world) host(name, pool string, roles ...v1alpha1.Role) *host {
	w.t.Helper()
	user, group := "system:node:"+name, "system:nodes" // the kubelet's own credential, as the agent uses it
	if w.workloads != w.server {                       // where the Machines are, a Node of the host's name is another host
		user, group = "system:serviceaccount:"+namespace+":refit-machine-"+name, "system:serviceaccounts"
	}
	agent := newClient(w.t, w.server.As(w.t, user, group))
	h := &host{w: w, roles: roles, Host: fakehost.New(namespace, name, oldK8s, agent)}
	h.WorkTime = 100 * time.Millisecond
	if hasRole(roles, v1alpha1.RoleControlPlane) {
		h.APIServer = oldK8s
	}
	ctx := context.Background()
	require.NoError(w.t, w.workload.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"pool": pool}}}
	m.Spec.Roles = roles
	require.NoError(w.t, w.admin.Create(ctx, m))
	h.postNode()
	w.hosts[name] = h
	h.done.Add(2)
	go h.every(100*time.Millisecond, h.kubeletOnce)
	go h.every(30*time.Millisecond, h.agentOnce)
	return h
}

// set changes how the host behaves.
func (h *host) set(change func(*host)) { h.Set(func(*fakehost.Host) { change(h) }) }

func (h *host) every(d time.Duration, once func() error) {
	defer h.done.Done()
	for {
		select {
		case <-h.w.ctx.Done():
			return
		case <-time.After(d):
			_ = once() // the API server may be away; the next round tries again
		}
	}
}

// --- the kubelet ---

func (h *host) kubeletOnce() error {
	var ready, stuck bool
	h.set(func(h *host) { ready, stuck = h.Ready, h.stuckPods })
	if ready {
		if err := h.renewLease(); err != nil {
			return err
		}
	}
	h.postNode()
	if stuck {
		return nil
	}
	pods := &corev1.PodList{}
	if err := h.w.workload.List(context.Background(), pods); err != nil {
		return err
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName == h.Name && p.DeletionTimestamp != nil {
			_ = h.w.workload.Delete(context.Background(), p, client.GracePeriodSeconds(0))
		}
	}
	return nil
}

func (h *host) renewLease() error {
	ctx, now := context.Background(), metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: h.Name}}
	err := h.w.workload.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &h.Name, &now
	if apierrors.IsNotFound(err) {
		return h.w.workload.Create(ctx, lease)
	}
	return errors.Join(err, h.w.workload.Update(ctx, lease))
}

func (h *host) postNode() {
	ready, kubelet, runtime := h.Node()
	state := corev1.ConditionFalse
	if ready {
		state = corev1.ConditionTrue
	}
	n := &corev1.Node{}
	if h.w.workload.Get(context.Background(), types.NamespacedName{Name: h.Name}, n) != nil {
		return
	}
	if len(n.Status.Conditions) == 1 && n.Status.Conditions[0].Status == state &&
		n.Status.NodeInfo.KubeletVersion == kubelet && n.Status.NodeInfo.ContainerRuntimeVersion == runtime {
		return
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: state, Message: "simulated", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: kubelet, ContainerRuntimeVersion: runtime}
	_ = h.w.workload.Status().Update(context.Background(), n)
}

// agentOnce has the agent look at its Machine, unless it is deaf.
func (h *host) agentOnce() error {
	var deaf bool
	h.set(func(h *host) { deaf = h.deaf })
	if deaf {
		return nil
	}
	m := &v1alpha1.Machine{}
	if err := h.Client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: h.Name}, m); err != nil {
		return err
	}
	return h.Look(h.w.ctx, m)
}
