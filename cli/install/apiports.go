package install

import (
	"context"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// apiPort marks the rule of the NetworkPolicy that is for API servers.
const apiPort = 6443

// APIPorts are those of a cluster's API server, as pods reach it: of its Service, and of what is behind that.
func APIPorts(ctx context.Context, kube kubernetes.Interface) ([]int64, error) {
	service, err := kube.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("looking for the Service of the API server: %w", err)
	}
	slicesOf, err := kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil, fmt.Errorf("looking for the endpoints of the API server: %w", err)
	}
	var ports []int64
	for _, p := range service.Spec.Ports {
		ports = append(ports, int64(p.Port))
	}
	for _, s := range slicesOf.Items {
		for _, p := range s.Ports {
			if p.Port != nil {
				ports = append(ports, int64(*p.Port))
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// AllowAPIPorts adds ports to what the coordinator's NetworkPolicy lets it reach as an API server; it says which it did not have.
func AllowAPIPorts(objects []*unstructured.Unstructured, ports []int64) (added []int64) {
	for _, o := range objects {
		if o.GetKind() != "NetworkPolicy" {
			continue
		}
		rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "egress")
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			allowed, _ := rule["ports"].([]any)
			if !hasPort(allowed, apiPort) {
				continue
			}
			for _, p := range ports {
				if !hasPort(allowed, p) {
					allowed, added = append(allowed, map[string]any{"protocol": "TCP", "port": p}), append(added, p)
				}
			}
			rule["ports"] = allowed
		}
		if len(added) > 0 {
			_ = unstructured.SetNestedSlice(o.Object, rules, "spec", "egress") // it was one before
		}
	}
	return added
}

func hasPort(allowed []any, port int64) bool {
	return slices.ContainsFunc(allowed, func(v any) bool {
		p, _ := v.(map[string]any)
		switch have := p["port"].(type) {
		case int64:
			return have == port
		case float64:
			return have == float64(port)
		}
		return false
	})
}
