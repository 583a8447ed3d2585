package simulation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const soakText = `apiVersion: refit.dev/v1alpha1
kind: Simulation
spec:
  machines:
  - {name: cp, count: 1, roles: [ControlPlane], versions: {kubelet: v1.37.2, controlPlane: v1.37.2}}
  - {name: w, count: 3, labels: {pool: workers}, versions: {kubelet: v1.36.3}}
---
apiVersion: refit.dev/v1alpha1
kind: MachineDeployment
metadata: {name: workers}
spec:
  selector: {matchLabels: {pool: workers}}
  template: {spec: {versions: {kubelet: v1.37.2}}}
  strategy: {rollingUpdate: {soak: %s}}
`

func TestASoakOfAnyLengthEndsAtItsTime(t *testing.T) {
	for _, soak := range []time.Duration{5 * time.Minute, 7*time.Minute + 3*time.Second, 15 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		t.Run(soak.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "scenario.yaml")
			require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, soakText, soak), 0o600))
			p := play(t, file)
			p.ends(completed, 1)
			for _, m := range []string{"w1", "w2", "w3"} {
				begins, ends := p.first("Soak", m), p.first("Release", m)
				require.GreaterOrEqual(t, begins, 0, p.text)
				require.Greater(t, ends, begins, p.text)
				assert.Equal(t, soak, p.entries[ends].Time.Sub(p.entries[begins].Time), m)
			}
		})
	}
}

func TestWhoStillSoaksAtTheEndSaysUntilWhen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, strings.Replace(soakText, "spec:\n", "spec:\n  until: 30m\n", 1), "1h"), 0o600))
	p := play(t, file)
	assert.Equal(t, timedOut, p.sum.Outcome)
	require.NotEmpty(t, p.sum.Waiting)
	assert.Equal(t, "w1", p.sum.Waiting[0].Machine)
	assert.Equal(t, "Soaking", p.sum.Waiting[0].Reason)
	assert.Contains(t, p.sum.Waiting[0].Message, "it has to stay well until 2030-01-07T09:05:50Z")
}
