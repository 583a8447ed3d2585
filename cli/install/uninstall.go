package install

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// dataKinds are Refit's own objects, pools before machines, so that no pool writes to a machine that goes.
var dataKinds = []string{"MachineDisruptionBudget", "MachineDeployment", "Machine", "Ledger"}

// InFlight names the machines that hold a slot: their nodes may be cordoned, and only
// the coordinator gives them back.
func (i *Installer) InFlight(ctx context.Context) ([]string, error) {
	var ledgers v1alpha1.LedgerList
	err := i.Client.List(ctx, &ledgers)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the ledgers: %w", err)
	}
	var names []string
	for _, l := range ledgers.Items {
		for _, s := range l.Spec.Slots {
			names = append(names, l.Namespace+"/"+s.Machine)
		}
	}
	return names, nil
}

// DeleteData deletes every object of Refit in all namespaces while the coordinator
// still runs, which takes its finalizers off them. Where the Deployments among the
// manifests are gone or scaled to 0, the finalizers are taken off here.
func (i *Installer) DeleteData(ctx context.Context, manifests []*unstructured.Unstructured) error {
	for _, kind := range dataKinds {
		list, err := i.list(ctx, kind)
		if err != nil {
			return err
		}
		for n := range list.Items {
			if err := client.IgnoreNotFound(i.Client.Delete(ctx, &list.Items[n])); err != nil {
				return fmt.Errorf("deleting %s: %w", title(&list.Items[n]), err)
			}
		}
		if err := i.awaitNone(ctx, kind, manifests); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			i.say("%s of kind %s deleted", upgrade.Count(len(list.Items), "object", "objects"), kind)
		}
	}
	return nil
}

func (i *Installer) awaitNone(ctx context.Context, kind string, manifests []*unstructured.Unstructured) error {
	var left []string
	if kind == "Machine" {
		i.warnOfIdle(ctx, manifests)
	}
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		list, err := i.list(ctx, kind)
		if err != nil {
			return false, err
		}
		left = left[:0]
		for n := range list.Items {
			left = append(left, title(&list.Items[n]))
		}
		if kind == "Machine" {
			err = i.release(ctx, list.Items, manifests)
		}
		return len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the objects of kind %s are gone (left: %s; their finalizers are taken off by the coordinator, so it has to run): %w", kind, strings.Join(left, ", "), err)
	}
	return nil
}

// release does the coordinator's last duty where there is none: it takes the finalizer
// off deleted Machines. The ledger is read after the Deployment was found without pods,
// and no coordinator grants a deleted Machine another slot.
func (i *Installer) release(ctx context.Context, machines []unstructured.Unstructured, manifests []*unstructured.Unstructured) error {
	gone, err := i.coordinatorGone(ctx, manifests)
	if err != nil || !gone {
		return err
	}
	busy, err := i.InFlight(ctx)
	if err != nil {
		return err
	}
	if len(busy) > 0 {
		return fmt.Errorf("taking the finalizers off: machines in flight: %s: install the coordinator again, which gives them back", strings.Join(busy, ", "))
	}
	for n := range machines {
		if err := i.unfinalize(ctx, &machines[n]); err != nil {
			return err
		}
	}
	return nil
}

func (i *Installer) unfinalize(ctx context.Context, m *unstructured.Unstructured) error {
	patch := client.MergeFromWithOptions(m.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if m.GetDeletionTimestamp().IsZero() || !controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerMachine) {
		return nil
	}
	err := i.Client.Patch(ctx, m, patch)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // another look will tell
		return nil
	}
	if err != nil {
		return fmt.Errorf("taking the finalizer off %s: %w", title(m), err)
	}
	i.say("%s released, in the absent coordinator's stead", title(m))
	return nil
}

// coordinatorGone says that no Deployment among the manifests runs anything.
func (i *Installer) coordinatorGone(ctx context.Context, manifests []*unstructured.Unstructured) (bool, error) {
	known := false
	for _, o := range manifests {
		if o.GetKind() != "Deployment" {
			continue
		}
		known = true
		now, err := i.read(ctx, o)
		if err != nil || now != nil && !scaledToZero(now) {
			return false, err
		}
	}
	return known, nil
}

// scaledToZero says that a Deployment wants no pods, and has none.
func scaledToZero(d *unstructured.Unstructured) bool {
	want, set := replicasOf(d, "spec")
	have, _ := replicasOf(d, "status")
	seen, _, _ := unstructured.NestedInt64(d.Object, "status", "observedGeneration")
	return set && want == 0 && have == 0 && seen >= d.GetGeneration()
}

func replicasOf(d *unstructured.Unstructured, part string) (n int64, set bool) {
	n, set, _ = unstructured.NestedInt64(d.Object, part, "replicas")
	return n, set
}

// warnOfIdle says at once that Machines are going to wait for a coordinator that does not run, and what to do.
func (i *Installer) warnOfIdle(ctx context.Context, manifests []*unstructured.Unstructured) {
	for _, o := range manifests {
		if o.GetKind() != "Deployment" {
			continue
		}
		now, err := i.read(ctx, o)
		if err != nil || now == nil || scaledToZero(now) {
			continue // released here, or told when it is waited for
		}
		if available, _, _ := unstructured.NestedInt64(now.Object, "status", "availableReplicas"); available == 0 {
			i.say("%s has no replica available, and Machines wait for it to take their finalizers off%s; to have that done from here: kubectl scale deployment -n %s %s --replicas=0",
				title(o), i.podTroubles(ctx, o), o.GetNamespace(), o.GetName())
		}
	}
}

// Remaining are those of the objects that the cluster has.
func (i *Installer) Remaining(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		there, err := i.exists(ctx, o)
		if err != nil {
			return nil, err
		}
		if there {
			out = append(out, o)
		}
	}
	return out, nil
}

func (i *Installer) exists(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	now, err := i.read(ctx, o)
	return now != nil, err
}

// read returns the object as the cluster has it, nil when it has none.
func (i *Installer) read(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(o.GroupVersionKind())
	err := i.Client.Get(ctx, client.ObjectKeyFromObject(o), now)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", title(o), err)
	}
	return now, nil
}

func (i *Installer) list(ctx context.Context, kind string) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: kind + "List"})
	err := i.Client.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return list, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing objects of kind %s: %w", kind, err)
	}
	return list, nil
}
