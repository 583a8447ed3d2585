package install

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// agentImage is the repository name of the agent's image in its DaemonSet.
const agentImage = "refit-agent"

// leaveName is the DaemonSet that takes the agent's things off the hosts.
const leaveName = "refit-leave"

// SetAgentImage sets the agent's image in its DaemonSet.
func SetAgentImage(objects []*unstructured.Unstructured, image string) error {
	return setImage(objects, "DaemonSet", agentImage, image)
}

// IdentifyAgents tells the coordinator as whom the agents come.
func IdentifyAgents(objects []*unstructured.Unstructured, identity string) error {
	return editContainers(objects, "Deployment", func(c map[string]any) bool {
		if image, _ := c["image"].(string); repositoryName(image) != imageName {
			return false
		}
		args, _ := c["args"].([]any)
		c["args"] = append(args, "--agent-identity="+identity)
		return true
	})
}

// DaemonSet is the agents' DaemonSet in the cluster; nil when there is none.
func (i *Installer) DaemonSet(ctx context.Context, manifests []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, o := range manifests {
		if o.GetKind() != "DaemonSet" {
			continue
		}
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		err := i.Client.Get(ctx, client.ObjectKeyFromObject(o), now)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", title(o), err)
		}
		return now, nil
	}
	return nil, nil
}

// LeaveHosts deletes the agents' DaemonSet, and has each of its hosts give up what the pods have installed there;
// with record also what Refit knows of the host. A host that does not answer is named.
func (i *Installer) LeaveHosts(ctx context.Context, manifests []*unstructured.Unstructured, record bool) error {
	leave, err := i.leaving(ctx, manifests, record)
	if err != nil || leave == nil {
		return err
	}
	i.say("waiting until every host has given up its executor")
	if err := i.await(ctx, leave, everywhere); err != nil {
		return fmt.Errorf("%w%s: the hosts without a ready pod of it still have refit-executor and refit-resume.service", err, i.podTroubles(ctx, leave))
	}
	return i.Delete(ctx, []*unstructured.Unstructured{leave})
}

// leaving is the DaemonSet that takes the agents' place; nil where there are none. One that an
// interrupted run has left is gone on with.
func (i *Installer) leaving(ctx context.Context, manifests []*unstructured.Unstructured, record bool) (*unstructured.Unstructured, error) {
	agents, err := i.DaemonSet(ctx, manifests)
	if err != nil {
		return nil, err
	}
	if agents == nil {
		left := &unstructured.Unstructured{}
		left.SetAPIVersion("apps/v1")
		left.SetKind("DaemonSet")
		left.SetNamespace("refit-agent")
		left.SetName(leaveName)
		return i.read(ctx, left)
	}
	leave, err := leaveDaemonSet(agents, record)
	if err != nil {
		return nil, err
	}
	if err := i.Delete(ctx, []*unstructured.Unstructured{agents}); err != nil {
		return nil, err
	}
	return leave, i.apply(ctx, leave)
}

func everywhere(d *unstructured.Unstructured) (bool, string) {
	field := func(name string) int64 {
		n, _, _ := unstructured.NestedInt64(d.Object, "status", name)
		return n
	}
	want, ready := field("desiredNumberScheduled"), field("numberReady")
	if field("observedGeneration") < d.GetGeneration() {
		return false, "has not been seen by its controller yet"
	}
	return ready >= want, fmt.Sprintf("is done on %d of %d hosts", ready, want)
}

// leaveDaemonSet is the agents' own, whose pods do one thing before they wait to be deleted.
func leaveDaemonSet(agents *unstructured.Unstructured, record bool) (*unstructured.Unstructured, error) {
	d := &unstructured.Unstructured{Object: map[string]any{"spec": agents.DeepCopy().Object["spec"]}}
	d.SetGroupVersionKind(agents.GroupVersionKind())
	d.SetNamespace(agents.GetNamespace())
	d.SetName(leaveName)
	labels := map[string]string{"app.kubernetes.io/name": leaveName, "app.kubernetes.io/part-of": "refit"}
	d.SetLabels(labels)
	containers, _, err := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		return nil, fmt.Errorf("reading %s: it has %d containers, not the agent's one", title(agents), len(containers))
	}
	wait, _ := containers[0].(map[string]any)
	leave := (&unstructured.Unstructured{Object: wait}).DeepCopy().Object
	args := []any{"leave", "--remove-executor"}
	if record {
		args = append(args, "--remove-record")
	}
	leave["name"], leave["args"] = "leave", args
	wait["name"], wait["args"] = "wait", []any{"wait"}
	for path, value := range map[string]any{
		"spec.selector.matchLabels":         toAny(labels),
		"spec.template.metadata.labels":     toAny(labels),
		"spec.template.spec.initContainers": []any{leave},
		"spec.template.spec.containers":     []any{wait},
	} {
		if err := unstructured.SetNestedField(d.Object, value, strings.Split(path, ".")...); err != nil {
			return nil, fmt.Errorf("making %s: %w", title(d), err)
		}
	}
	return d, nil
}

func toAny(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}
