package dashboard

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/cli/verbs"
)

// Why asks the gates as kubectl refit why does, of what the readers have.
func Why(reader, nodes client.Reader, namespace string) func(context.Context, string) (verbs.Explanation, error) {
	return func(ctx context.Context, machine string) (verbs.Explanation, error) {
		n, err := verbs.ReadAll(ctx, reader, nodes, namespace)
		if err != nil {
			return verbs.Explanation{}, err
		}
		if _, err := n.Select([]string{machine}, []verbs.Kind{verbs.Machine}); err != nil {
			return verbs.Explanation{}, fmt.Errorf("asking the gates: %w", err)
		}
		return n.Why(machine), nil
	}
}
