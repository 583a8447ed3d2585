package setup

import (
	"context"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexName finds Machines by name across namespaces.
const indexName = "metadata.name"

// mapper says which objects have to look again when another one has changed. A list
// from the cache that fails yields nothing: it fails only while the program ends.
type mapper struct {
	cache   client.Reader
	changes *fleet.Changes // counted before anybody is told
}

// namespaceOf is the request of the rollout controller.
func namespaceOf(_ context.Context, o client.Object) []ctrl.Request {
	return []ctrl.Request{requestFor(o.GetNamespace())}
}

func requestFor(namespace string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

// concerned are the machines whose next hop may depend on the versions of this one: all
// of them on a control plane's, the control planes on a kubelet's and on an etcd's, and the members of etcd on each other's.
func (m mapper) concerned(ctx context.Context, o client.Object) []ctrl.Request {
	changed, ok := o.(*v1alpha1.Machine)
	if !ok {
		return nil
	}
	m.changes.Add()
	everyone, etcd := isControlPlane(changed), hasEtcd(changed)
	return m.machines(ctx, changed.Namespace, func(other *v1alpha1.Machine) bool {
		return other.Name != changed.Name && (everyone || isControlPlane(other) || etcd && hasEtcd(other))
	})
}

// concernedByNode are the machines whose next hop may depend on the kubelet of another Node,
// one without a Machine above all, of which nothing else tells.
func (m mapper) concernedByNode(ctx context.Context, n *corev1.Node) []ctrl.Request {
	m.changes.Add()
	everyone := upgrade.Unmanaged(n.Name, plannersNode(n)).APIServer != upgrade.NoAPIServer
	return m.machines(ctx, "", func(other *v1alpha1.Machine) bool {
		return other.Name != n.Name && (everyone || isControlPlane(other))
	})
}

// plannersNode is what the planner of other hosts' hops takes from a Node.
func plannersNode(n *corev1.Node) upgrade.NodeState {
	return upgrade.NodeState{Labels: n.Labels, Kubelet: n.Status.NodeInfo.KubeletVersion}
}

func hasEtcd(m *v1alpha1.Machine) bool { return slices.Contains(m.Spec.Roles, v1alpha1.RoleEtcd) }

// isControlPlane says that kubelets meet an API server of the machine, whatever its roles say.
func isControlPlane(m *v1alpha1.Machine) bool {
	return upgrade.StateOf(m, nil, nil).APIServer != upgrade.NoAPIServer
}

func (m mapper) machines(ctx context.Context, namespace string, want func(*v1alpha1.Machine) bool) []ctrl.Request {
	list := &v1alpha1.MachineList{}
	if m.cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	var out []ctrl.Request
	for i := range list.Items {
		if want(&list.Items[i]) {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// machinesOf are the machines of a deployment's namespace: a selector that has changed
// concerns those that it no longer matches as well.
func (m mapper) machinesOf(ctx context.Context, o client.Object) []ctrl.Request {
	return m.machines(ctx, o.GetNamespace(), func(*v1alpha1.Machine) bool { return true })
}

// seenNode is the machine of a node that has changed.
func (m mapper) seenNode(ctx context.Context, n *corev1.Node) []ctrl.Request {
	m.changes.Add()
	return m.machineOfNode(ctx, n)
}

func (m mapper) machineOfNode(ctx context.Context, n *corev1.Node) []ctrl.Request {
	list := &v1alpha1.MachineList{}
	if m.cache.List(ctx, list, client.MatchingFields{indexName: n.Name}, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	out := make([]ctrl.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// namespacesOfNode are all that have Machines: pods go to any Node of the cluster, and a
// kubelet without a Machine counts for the skew of all.
func (m mapper) namespacesOfNode(ctx context.Context, _ *corev1.Node) []ctrl.Request {
	list := &v1alpha1.MachineList{}
	if m.cache.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	namespaces := sets.New[string]()
	for i := range list.Items {
		namespaces.Insert(list.Items[i].Namespace)
	}
	out := make([]ctrl.Request, 0, len(namespaces))
	for _, namespace := range sets.List(namespaces) {
		out = append(out, requestFor(namespace))
	}
	return out
}

func (m mapper) deployments(ctx context.Context, o client.Object) []ctrl.Request {
	list := &v1alpha1.MachineDeploymentList{}
	if m.cache.List(ctx, list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	out := make([]ctrl.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
