package drain

import (
	"context"
	"errors"
	"slices"

	"github.com/refit-dev/refit/pkg/drain"
)

// flags names all flags that help after err, where any does.
func (r *Runner) flags(ctx context.Context, node string, err error) []string {
	var b *drain.Blocked
	if !errors.As(err, &b) || flagFor(b.Reason) == "" {
		return nil
	}
	reasons := []string{b.Reason}
	for _, p := range b.Pods {
		reasons = append(reasons, p.Reason)
	}
	if slices.Contains(reasons, drain.ReasonEmptyDirPods) {
		reasons = append(reasons, r.besidesEmptyDir(ctx, node)...)
	}
	var flags []string
	for _, reason := range reasons {
		if flag := flagFor(reason); flag != "" && !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return flags
}

// besidesEmptyDir are the refusals that are left once emptyDir data may be lost: of a pod
// with two faults the drain tells that one first.
func (r *Runner) besidesEmptyDir(ctx context.Context, node string) []string {
	opts := r.Options
	opts.EmptyDir = drain.ActionEvict
	f, err := drain.NewCluster(r.Kube).Drainer(opts).Forecast(ctx, node)
	if err != nil {
		return nil // it is a hint
	}
	var reasons []string
	for _, p := range f.Pods {
		if p.Reason == drain.ReasonUnmanagedPods {
			reasons = append(reasons, p.Reason)
		}
	}
	return reasons
}

func flagFor(reason string) string {
	switch reason {
	case drain.ReasonUnmanagedPods:
		return "--force"
	case drain.ReasonEmptyDirPods:
		return "--delete-emptydir-data"
	case drain.ReasonPodsTerminating, drain.ReasonNodeUnreachable:
		return "--skip-wait-for-delete-timeout"
	}
	return ""
}
