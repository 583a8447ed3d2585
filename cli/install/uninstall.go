package install

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
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
// still runs, which takes its finalizers off them.
func (i *Installer) DeleteData(ctx context.Context) error {
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
		if err := i.awaitNone(ctx, kind); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			i.say("%d objects of kind %s deleted", len(list.Items), kind)
		}
	}
	return nil
}

func (i *Installer) awaitNone(ctx context.Context, kind string) error {
	var left []string
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		list, err := i.list(ctx, kind)
		if err != nil {
			return false, err
		}
		left = left[:0]
		for n := range list.Items {
			left = append(left, title(&list.Items[n]))
		}
		return len(left) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the objects of kind %s are gone (left: %s; their finalizers are taken off by the coordinator, so it has to run): %w", kind, strings.Join(left, ", "), err)
	}
	return nil
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
