package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/refit-dev/refit/api/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// api is the world as the controllers see it: what they ask of an API server, and no more.
type api struct {
	client.Client // nil: what is not below, nobody asks for

	world  *world
	scheme *runtime.Scheme
}

// kinds are those that the controllers know. Registering them takes longer than a small rollout.
var kinds = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering the kinds: %w", err)
		}
	}
	return scheme, nil
})

func newAPI(w *world) (*api, error) {
	scheme, err := kinds()
	return &api{world: w, scheme: scheme}, err
}

// Scheme implements client.Client.
func (a *api) Scheme() *runtime.Scheme { return a.scheme }

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

func copyOf[T any](stored *T, into *T, resource, name string) error {
	if stored == nil {
		return notFound(resource, name)
	}
	*into = *stored
	return nil
}

// Get implements client.Reader. What it gives shares its parts with what is stored.
func (a *api) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch into := o.(type) {
	case *v1alpha1.Machine:
		return copyOf(a.world.machines[key.Name], into, "machines", key.Name)
	case *v1alpha1.MachineDeployment:
		return copyOf(a.world.deployments[key.Name], into, "machinedeployments", key.Name)
	case *v1alpha1.Ledger:
		err := copyOf(a.world.ledger, into, "ledgers", key.Name)
		into.Spec.Slots = slices.Clone(into.Spec.Slots) // they are changed in place
		return err
	case *corev1.Node:
		return copyOf(a.world.nodes[key.Name], into, "nodes", key.Name)
	case *coordinationv1.Lease:
		into.Namespace, into.Name = key.Namespace, key.Name // never renewed: of a host with etcd alone nothing is simulated but that it is well
		return nil
	case *corev1.ServiceAccount:
		return a.getAccess("serviceaccounts/"+key.Name, key, into)
	case *rbacv1.Role:
		return a.getAccess("roles/"+key.Name, key, into)
	case *rbacv1.RoleBinding:
		return a.getAccess("rolebindings/"+key.Name, key, into)
	}
	return unexpected("get", o)
}

func (a *api) getAccess(id string, key client.ObjectKey, into client.Object) error {
	switch stored := a.world.access[id].(type) {
	case *corev1.ServiceAccount:
		if account, ok := into.(*corev1.ServiceAccount); ok {
			stored.DeepCopyInto(account)
			return nil
		}
	case *rbacv1.Role:
		if role, ok := into.(*rbacv1.Role); ok {
			stored.DeepCopyInto(role)
			return nil
		}
	case *rbacv1.RoleBinding:
		if binding, ok := into.(*rbacv1.RoleBinding); ok {
			stored.DeepCopyInto(binding)
			return nil
		}
	}
	return notFound("rbac", key.Name)
}

func unexpected(verb string, o any) error {
	return fmt.Errorf("the simulation has no way to %s a %T: this is a fault of Refit's", verb, o)
}

// List implements client.Reader. There is one namespace.
func (a *api) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch into := list.(type) {
	case *v1alpha1.MachineList:
		into.Items = a.world.list
		if !slices.Contains(opts, client.ListOption(client.UnsafeDisableDeepCopy)) {
			into.Items = slices.Clone(a.world.list) // whoever has it may keep it
		} else {
			a.world.lent = a.world.lending
		}
	case *v1alpha1.MachineDeploymentList:
		into.Items = a.world.listDeployments()
	case *v1alpha1.MachineDisruptionBudgetList:
		into.Items = a.world.listBudgets()
	case *corev1.NodeList:
		into.Items = a.world.listNodes()
	case *appsv1.ControllerRevisionList:
		for _, name := range slices.Sorted(maps.Keys(a.world.revisions)) {
			into.Items = append(into.Items, *a.world.revisions[name].DeepCopy())
		}
	default:
		return unexpected("list", list)
	}
	return nil
}

// Create implements client.Writer.
func (a *api) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	switch object := o.(type) {
	case *v1alpha1.Ledger:
		a.world.putLedger(object.DeepCopy())
		object.ResourceVersion = a.world.ledger.ResourceVersion
		return nil
	case *appsv1.ControllerRevision:
		a.world.stamp("ControllerRevision", object)
		a.world.revisions[object.Name] = object.DeepCopy()
		return nil
	case *corev1.ServiceAccount:
		a.world.access["serviceaccounts/"+object.Name] = object.DeepCopy()
		return nil
	case *rbacv1.Role:
		a.world.access["roles/"+object.Name] = object.DeepCopy()
		return nil
	case *rbacv1.RoleBinding:
		a.world.access["rolebindings/"+object.Name] = object.DeepCopy()
		return nil
	}
	return unexpected("create", o)
}

// Update implements client.Writer.
func (a *api) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	switch object := o.(type) {
	case *v1alpha1.Ledger:
		if stored := a.world.ledger; stored == nil || stored.ResourceVersion != object.ResourceVersion {
			return conflict("ledgers", object.Name)
		}
		next := *object
		next.Spec.Slots = slices.Clone(object.Spec.Slots)
		a.world.putLedger(&next)
		object.ResourceVersion = next.ResourceVersion
		return nil
	case *v1alpha1.Machine:
		return a.updateMeta(object)
	case *rbacv1.Role, *rbacv1.RoleBinding, *appsv1.ControllerRevision:
		return a.Create(ctx, o)
	}
	return unexpected("update", o)
}

// updateMeta takes over finalizers; the last one of a deleted Machine ends it.
func (a *api) updateMeta(m *v1alpha1.Machine) error {
	stored := a.world.machines[m.Name]
	if stored == nil {
		return notFound("machines", m.Name)
	}
	if stored.ResourceVersion != m.ResourceVersion {
		return conflict("machines", m.Name)
	}
	if !stored.DeletionTimestamp.IsZero() && len(m.Finalizers) == 0 {
		a.world.removeMachine(m.Name)
		return nil
	}
	next := *stored
	next.Finalizers = m.Finalizers
	a.world.putMachine(&next)
	m.ResourceVersion = next.ResourceVersion
	return nil
}

// Delete implements client.Writer, for revisions that nobody needs.
func (a *api) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	if revision, ok := o.(*appsv1.ControllerRevision); ok {
		delete(a.world.revisions, revision.Name)
		return nil
	}
	return unexpected("delete", o)
}

// Patch implements client.Writer, for the finalizer alone.
func (a *api) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	if m, ok := o.(*v1alpha1.Machine); ok {
		return a.updateMeta(m)
	}
	return unexpected("patch", o)
}

func conflict(resource, name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, name, fmt.Errorf("it has changed since it was read"))
}

// applied is the content of an apply; what the controllers apply is unstructured.
func applied(o runtime.ApplyConfiguration) (map[string]any, error) {
	u, ok := o.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return nil, unexpected("apply", o)
	}
	return u.UnstructuredContent(), nil
}

func nameOf(content map[string]any) (name, version string) {
	metadata, _ := content["metadata"].(map[string]any)
	name, _ = metadata["name"].(string)
	version, _ = metadata["resourceVersion"].(string)
	return name, version
}

// Apply implements client.Writer, for a template that is written into a Machine without force:
// what people have written there with another value is a conflict.
func (a *api) Apply(_ context.Context, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	content, err := applied(o)
	if err != nil {
		return err
	}
	name, _ := nameOf(content)
	stored := a.world.machines[name]
	if stored == nil {
		return notFound("machines", name)
	}
	spec, _ := content["spec"].(map[string]any)
	base := a.world.base[name]
	if fields := conflicts(base, spec, "spec"); len(fields) > 0 {
		return applyConflict(fields)
	}
	return a.world.putSpec(name, merged(base, spec))
}

func applyConflict(fields []string) error {
	causes := make([]metav1.StatusCause, 0, len(fields))
	for _, f := range fields {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: "." + f, Message: `conflict with "kubectl"`})
	}
	return apierrors.NewApplyConflict(causes, fmt.Sprintf("Apply failed with %d conflicts", len(causes)))
}

// putSpec gives a Machine a spec; one that it has already changes nothing.
func (w *world) putSpec(name string, spec map[string]any) error {
	var next v1alpha1.MachineSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &next); err != nil {
		return fmt.Errorf("reading the spec of Machine %s: %w", name, err)
	}
	stored := w.machines[name]
	if sameJSON(stored.Spec, next) {
		return nil
	}
	m := *stored
	m.Spec = next
	m.Generation++
	w.putMachine(&m)
	return nil
}

// Status implements client.StatusClient.
func (a *api) Status() client.SubResourceWriter { return statusWriter{api: a} }

type statusWriter struct {
	client.SubResourceWriter // nil, as above

	api *api
}

// Apply implements client.SubResourceWriter.
func (s statusWriter) Apply(_ context.Context, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	content, err := applied(o)
	if err != nil {
		return err
	}
	fields, _ := content["status"].(map[string]any)
	kind, _ := content["kind"].(string)
	name, version := nameOf(content)
	if kind == "MachineDeployment" {
		return s.api.deploymentStatus(name, fields)
	}
	return s.api.machineStatus(name, version, fields)
}

func (a *api) deploymentStatus(name string, fields map[string]any) error {
	stored := a.world.deployments[name]
	if stored == nil {
		return notFound("machinedeployments", name)
	}
	next := *stored
	next.Status = v1alpha1.MachineDeploymentStatus{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &next.Status); err != nil {
		return fmt.Errorf("reading the status of MachineDeployment %s: %w", name, err)
	}
	a.world.putDeployment(&next)
	return nil
}

// machineStatus takes over the coordinator's fields, and leaves the agent's.
func (a *api) machineStatus(name, version string, fields map[string]any) error {
	stored := a.world.machines[name]
	switch {
	case stored == nil:
		return notFound("machines", name)
	case version != "" && version != stored.ResourceVersion:
		return conflict("machines", name)
	}
	var s v1alpha1.MachineStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &s); err != nil {
		return fmt.Errorf("reading the status of Machine %s: %w", name, err)
	}
	next := *stored
	t := &next.Status
	t.NodeRef, t.Assignment, t.Grant, t.Role, t.Phase = s.NodeRef, s.Assignment, s.Grant, s.Role, s.Phase
	t.RolloutFailure, t.ObservedRetry, t.History = s.RolloutFailure, s.ObservedRetry, s.History
	t.Conditions = mergeConditions(stored.Status.Conditions, s.Conditions)
	a.world.putMachine(&next)
	return nil
}

// mergeConditions keeps the agent's conditions next to the coordinator's.
func mergeConditions(stored, coordinators []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range stored {
		if slices.Contains(v1alpha1.AgentConditions, c.Type) {
			out = append(out, c)
		}
	}
	return append(out, coordinators...)
}

// conflicts are the fields of spec that base has with another value. A list is one field.
func conflicts(base, spec map[string]any, path string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		mine, there := base[key]
		if !there {
			continue
		}
		below, isMap := spec[key].(map[string]any)
		under, both := mine.(map[string]any)
		switch {
		case isMap && both:
			out = append(out, conflicts(under, below, path+"."+key)...)
		case !sameJSON(mine, spec[key]):
			out = append(out, path+"."+key)
		}
	}
	return out
}

// merged lays one tree over another; neither is changed.
func merged(base, over map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		below, isMap := value.(map[string]any)
		under, both := out[key].(map[string]any)
		if isMap && both {
			out[key] = merged(under, below)
			continue
		}
		out[key] = runtime.DeepCopyJSONValue(value)
	}
	return out
}

// without is a tree less what another one says as well.
func without(tree, same map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range tree {
		below, isMap := value.(map[string]any)
		under, both := same[key].(map[string]any)
		switch other, there := same[key]; {
		case isMap && both:
			if rest := without(below, under); len(rest) > 0 {
				out[key] = rest
			}
		case !there || !sameJSON(value, other):
			out[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	return out
}
