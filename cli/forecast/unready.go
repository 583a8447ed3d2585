package forecast

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/pkg/drain"
)

// Unready are the pods, by namespace/name, that are not ready. Only the namespaces are read
// whose budgets hold pods of more than one of the nodes.
func Unready(ctx context.Context, kube kubernetes.Interface, forecasts []drain.Forecast) (map[string]bool, error) {
	unready, seen, read := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range forecasts {
		for _, b := range f.Budgets {
			key := b.Namespace + "/" + b.Name
			if !seen[key] || read[b.Namespace] {
				seen[key] = true
				continue
			}
			read[b.Namespace] = true
			pods, err := kube.CoreV1().Pods(b.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing the pods of namespace %s: %w", b.Namespace, err)
			}
			for i := range pods.Items {
				if p := &pods.Items[i]; !ready(p) {
					unready[p.Namespace+"/"+p.Name] = true
				}
			}
		}
	}
	return unready, nil
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
