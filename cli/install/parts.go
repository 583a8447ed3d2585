package install

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Parts of an installation whose Machines and Nodes are in two clusters.
const (
	// PartManagement is for the cluster that has the Machines and the coordinator.
	PartManagement = "management"
	// PartWorkload is for the cluster that has the Nodes: what the coordinator may do there, and nothing else.
	PartWorkload = "workload"
)

// WorkloadSecret holds the kubeconfig of the workload cluster, under the key kubeconfig, in the coordinator's namespace.
const WorkloadSecret = "refit-workload-kubeconfig"

const (
	workloadPath   = "/etc/refit/workload"
	leaseNamespace = "kube-node-lease"
)

// Part is what belongs into one of two clusters; all of it for no part. In the management cluster the coordinator reads
// the kubeconfig of the workload cluster from a Secret.
func Part(objects []*unstructured.Unstructured, part string) ([]*unstructured.Unstructured, error) {
	if part == "" {
		return objects, nil
	}
	// The coordinator's namespace and account are wanted in both: they are whom the roles are given to.
	account := func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceAccount" }
	home := ""
	if i := slices.IndexFunc(objects, account); i >= 0 {
		home = objects[i].GetNamespace()
	}
	var out []*unstructured.Unstructured
	for _, o := range objects {
		both := account(o) || o.GetKind() == "Namespace" && o.GetName() == home
		if both || onNodes(o) == (part == PartWorkload) {
			out = append(out, o)
		}
	}
	if part == PartManagement {
		return out, mountKubeconfig(out)
	}
	return out, nil
}

// onNodes says that an object is about Nodes, and what is on them.
func onNodes(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "ClusterRole", "ClusterRoleBinding":
		return true
	case "Role", "RoleBinding":
		return o.GetNamespace() == leaseNamespace
	}
	return false
}

// mountKubeconfig has the coordinator's Deployment find the workload cluster.
func mountKubeconfig(objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		if err := mountInto(o); err != nil {
			return fmt.Errorf("mounting the workload cluster's kubeconfig into Deployment %s: %w", o.GetName(), err)
		}
	}
	return nil
}

func mountInto(deployment *unstructured.Unstructured) error {
	pod := []string{"spec", "template", "spec"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, append(slices.Clone(pod), "containers")...)
	if err != nil {
		return err //nolint:wrapcheck // wrapped by the caller
	}
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if !ok {
			continue
		}
		args, _ := container["args"].([]any)
		mounts, _ := container["volumeMounts"].([]any)
		container["args"] = append(args, "--workload-kubeconfig="+workloadPath+"/kubeconfig")
		container["volumeMounts"] = append(mounts, map[string]any{"name": "workload", "mountPath": workloadPath, "readOnly": true})
	}
	if err := unstructured.SetNestedSlice(deployment.Object, containers, append(slices.Clone(pod), "containers")...); err != nil {
		return err //nolint:wrapcheck // wrapped by the caller
	}
	volumes, _, err := unstructured.NestedSlice(deployment.Object, append(slices.Clone(pod), "volumes")...)
	if err != nil {
		return err //nolint:wrapcheck // wrapped by the caller
	}
	volumes = append(volumes, map[string]any{"name": "workload", "secret": map[string]any{"secretName": WorkloadSecret}})
	return unstructured.SetNestedSlice(deployment.Object, volumes, append(slices.Clone(pod), "volumes")...) //nolint:wrapcheck // wrapped by the caller
}
