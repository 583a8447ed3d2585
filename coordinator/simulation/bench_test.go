package simulation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/cli/simulate"
	"github.com/refit-dev/refit/coordinator/simulation"
)

// largeText is a control plane and a pool, of which a twentieth may be away at a time.
const largeText = `apiVersion: refit.dev/v1alpha1
kind: Simulation
spec:
  seed: 1
  durations: {drain: {median: 2m, sigma: 0.8}, apply: {median: 3m, sigma: 0.8}}
  machines:
  - {name: cp, count: 3, roles: [ControlPlane], versions: {kubelet: v1.36.3, controlPlane: v1.36.3}, wish: {kubelet: v1.37.2, controlPlane: v1.37.2}}
  - {name: w, count: %d, labels: {pool: workers}, versions: {kubelet: v1.36.3}, topologyKey: zone, domains: [a, b, c]}
---
apiVersion: refit.dev/v1alpha1
kind: MachineDeployment
metadata: {name: workers}
spec:
  selector: {matchLabels: {pool: workers}}
  template: {spec: {versions: {kubelet: v1.37.2}}}
  strategy: {rollingUpdate: {maxUnavailable: 5%%}}
`

func BenchmarkARollout(b *testing.B) {
	for _, workers := range []int{500, 1000, 5000, 20000} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "scenario.yaml")
			require.NoError(b, os.WriteFile(file, fmt.Appendf(nil, largeText, workers), 0o600))
			s, err := simulate.Read([]string{file}, "refit", nil)
			require.NoError(b, err)
			for b.Loop() {
				e, err := simulation.New(s, nil)
				require.NoError(b, err)
				sum, err := e.Run(b.Context())
				require.NoError(b, err)
				require.Equal(b, simulation.Completed, sum.Outcome)
			}
		})
	}
}
