package install

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager owns what is installed.
const FieldManager = "kubectl-refit"

const pollInterval = 300 * time.Millisecond

// Installer applies and deletes manifests.
type Installer struct {
	// Client whose mapper learns of new kinds.
	Client client.Client
	// Out is told of each object and each wait.
	Out io.Writer
}

// Apply applies the objects in order, by server-side apply, so that installing again
// updates. Kinds that depend on a CRD are applied once it is served.
func (i *Installer) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for n, o := range objects {
		if err := i.apply(ctx, o); err != nil {
			return err
		}
		last := n == len(objects)-1
		if o.GetKind() == "CustomResourceDefinition" && (last || objects[n+1].GetKind() != o.GetKind()) {
			if err := i.awaitCRDs(ctx, objects); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *Installer) apply(ctx context.Context, o *unstructured.Unstructured) error {
	apply := client.ApplyConfigurationFromUnstructured(o.DeepCopy())
	if err := i.Client.Apply(ctx, apply, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	i.say("%s applied", title(o))
	return nil
}

func (i *Installer) awaitCRDs(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := i.await(ctx, o, func(now *unstructured.Unstructured) (bool, string) {
			return conditionTrue(now, "Established"), "is not served yet"
		}); err != nil {
			return err
		}
	}
	return nil
}

// AwaitAvailable waits until each Deployment has rolled out and is available, and each
// DaemonSet has a ready pod on every host.
func (i *Installer) AwaitAvailable(ctx context.Context, objects []*unstructured.Unstructured) error {
	ready := map[string]func(*unstructured.Unstructured) (bool, string){"Deployment": rolledOut, "DaemonSet": everywhere}
	for _, o := range objects {
		done := ready[o.GetKind()]
		if done == nil {
			continue
		}
		i.say("waiting for %s", title(o))
		if err := i.await(ctx, o, done); err != nil {
			return fmt.Errorf("%w%s", err, i.podTroubles(ctx, o))
		}
		i.say("%s is available", title(o))
	}
	return nil
}

func rolledOut(d *unstructured.Unstructured) (bool, string) {
	field := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(d.Object, path...)
		return n
	}
	want, updated, available := field("spec", "replicas"), field("status", "updatedReplicas"), field("status", "availableReplicas")
	if field("status", "observedGeneration") < d.GetGeneration() {
		return false, "has not been seen by its controller yet"
	}
	return conditionTrue(d, "Available") && updated >= want && available >= 1,
		fmt.Sprintf("has %d of %d replicas updated and %d available", updated, want, available)
}

// podTroubles says why pods of a Deployment do not run, as far as they say so.
func (i *Installer) podTroubles(ctx context.Context, d *unstructured.Unstructured) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	labels, _, _ := unstructured.NestedStringMap(d.Object, "spec", "selector", "matchLabels")
	var pods corev1.PodList
	if err := i.Client.List(ctx, &pods, client.InNamespace(d.GetNamespace()), client.MatchingLabels(labels)); err != nil {
		return ""
	}
	troubles := ""
	for _, p := range pods.Items {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				troubles += fmt.Sprintf("; pod %s: %s: %s", p.Name, c.Reason, c.Message)
			}
		}
		for _, c := range p.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				troubles += fmt.Sprintf("; pod %s: %s: %s", p.Name, w.Reason, w.Message)
			}
		}
	}
	return troubles
}

func (i *Installer) await(ctx context.Context, o *unstructured.Unstructured, done func(*unstructured.Unstructured) (bool, string)) error {
	state := "was not found"
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		err := i.Client.Get(ctx, client.ObjectKeyFromObject(o), now)
		if err == nil {
			ok, why := done(now)
			state = why
			return ok, nil
		}
		if ctx.Err() == nil { // a reading that the end of the wait cuts off tells nothing new
			state = "could not be read: " + err.Error()
		}
		return false, ignorePassing(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: it %s: %w", title(o), state, err)
	}
	return nil
}

// ignorePassing ends a wait early only for what waiting cannot cure.
func ignorePassing(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return err
	}
	return nil
}

// Delete deletes the objects, last first, and waits until they are gone.
func (i *Installer) Delete(ctx context.Context, objects []*unstructured.Unstructured) error {
	for n := len(objects) - 1; n >= 0; n-- {
		o := objects[n]
		err := i.Client.Delete(ctx, o.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deleting %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if err := i.awaitGone(ctx, o); err != nil {
			return err
		}
		i.say("%s deleted", title(o))
	}
	return nil
}

func (i *Installer) awaitGone(ctx context.Context, o *unstructured.Unstructured) error {
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		err := i.Client.Get(ctx, client.ObjectKeyFromObject(o), now)
		return apierrors.IsNotFound(err) || meta.IsNoMatchError(err), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s is gone: %w", title(o), err)
	}
	return nil
}

func conditionTrue(o *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m["status"] == "True"
		}
	}
	return false
}

func title(o *unstructured.Unstructured) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GetKind() + " " + name
}

func (i *Installer) say(format string, args ...any) { fmt.Fprintf(i.Out, format+"\n", args...) }
