package drain

import (
	"context"
	"fmt"
	"io"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/pkg/drain"
)

// Rehearse asks the API server, in a dry run, for each eviction that the forecast says
// goes now, so that roles and admission have their say, and returns how many it refuses.
func Rehearse(ctx context.Context, kube kubernetes.Interface, f drain.Forecast, out io.Writer) (int, error) {
	refused := 0
	for _, p := range f.Pods {
		if p.Outlook != drain.OutlookNow {
			continue
		}
		err := kube.PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			fmt.Fprintf(out, "node/%s pod %s/%s evicted (server dry run)\n", f.Node, p.Namespace, p.Name)
		case ctx.Err() != nil:
			return refused, fmt.Errorf("evicting pod %s/%s in a dry run: %w", p.Namespace, p.Name, err)
		default:
			refused++
			fmt.Fprintf(out, "node/%s pod %s/%s refused (server dry run): %v\n", f.Node, p.Namespace, p.Name, err)
		}
	}
	return refused, nil
}
