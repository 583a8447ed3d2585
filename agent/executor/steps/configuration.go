package steps

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// configured says whether what is wished of the kubelet's configuration is effective: in the
// files that the process was told of, not overruled, and read since they were written.
func configured(ctx context.Context, h *Host, want *upgrade.KubeletWish) error {
	if want == nil {
		return nil
	}
	facts, err := h.Facts.Facts(ctx, nil)
	if err != nil {
		return fmt.Errorf("reading the facts of the host: %w", err)
	}
	spec, err := specOf(*want)
	if err != nil {
		return err
	}
	differences := upgrade.KubeletDifferences(*want, facts.ObservedKubelet(spec))
	if len(differences) > 0 {
		return fail("KubeletConfigurationMismatch", "%s%s", strings.Join(differences, "; "), problems(facts))
	}
	return nil
}

// specOf is a spec that wishes for a configuration.
func specOf(want upgrade.KubeletWish) (v1alpha1.MachineSpec, error) {
	var spec v1alpha1.MachineSpec
	raw, err := upgrade.MarshalStable(want.Configuration)
	if err == nil {
		spec.Kubelet = &v1alpha1.KubeletSpec{Configuration: &runtime.RawExtension{Raw: raw}}
	}
	return spec, err //nolint:wrapcheck // says what it was encoding
}
