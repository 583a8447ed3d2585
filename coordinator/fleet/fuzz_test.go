package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// A bound is a number or a percentage; a text that is neither never widens it.
func FuzzScaled(f *testing.F) {
	for _, seed := range []string{"10%", "0%", "100%", "-5%", "%", "ten", "1e3%", "99999999999999999999%", "10"} {
		f.Add(seed, 37, 1)
	}
	f.Fuzz(func(t *testing.T, text string, total, minimum int) {
		if total < 0 || total > 10_000 || minimum < 0 || minimum > total {
			return
		}
		down, up := fleet.Scaled(intstr.FromString(text), total, minimum), fleet.ScaledUp(intstr.FromString(text), total)
		require.GreaterOrEqual(t, down, minimum)
		require.Equal(t, down, fleet.Scaled(intstr.FromString(text), total, minimum))
		if text == "100%" {
			require.Equal(t, total, down)
			require.Equal(t, total, up)
		}
	})
}
