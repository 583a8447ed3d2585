package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/usage"
)

func TestRolloutsAreFollowedAndDiagnosed(t *testing.T) {
	bench := newBenches(t)

	t.Run("watch ends with a rollout that is complete", func(t *testing.T) {
		b := bench(t)
		assert.Contains(t, b.no(usage.ExitCode, "watch", "--until-done"), "nothing to wait for")
		b.pool("workers", "{}")
		b.machine("w1", "workers", `{phase: Ready, conditions: [{type: UpToDate, status: "True", reason: UpToDate, message: "", observedGeneration: 1, lastTransitionTime: "2026-05-01T12:00:00Z"}]}`)
		b.progress("workers", "True", "Complete")
		out, errs := b.ok("watch", "--until-done")
		assert.Contains(t, out, " w1 (workers) Ready")
		assert.Contains(t, errs, "a line for each change")
		assert.Contains(t, errs, "up to date: workers")
		out, _ = b.ok("watch", "workers", "--until-done", "-o", "json")
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			assert.True(t, json.Valid([]byte(line)), line)
		}
		b.progress("workers", "False", "FailureThresholdReached")
		assert.Contains(t, b.no(usage.ExitFault, "watch", "--until-done"), "pool workers does not go on by itself: FailureThresholdReached")
	})

	t.Run("logs says where they are", func(t *testing.T) {
		b := bench(t)
		b.machine("w1", "workers", working)
		b.machine("w2", "workers", "{}")
		out, errs, code := b.refit(b.in("logs", "w1")...)
		assert.Equal(t, usage.ExitElsewhere, code)
		assert.Contains(t, out, "operation g-w1 (Upgrade): Processing, step 3 of 9: InstallPackages")
		assert.Contains(t, errs, "journalctl -u refit-op-g-w1 -u refit-resume")
		assert.Contains(t, b.no(usage.ExitRefused, "logs", "w2"), "nothing was ever done")
		assert.Contains(t, b.no(usage.ExitCode, "logs", "w1", "--operation", "g9"), "no operation g9")
	})

	t.Run("diagnose writes one archive, and never over another", func(t *testing.T) {
		b := bench(t)
		b.machine("w1", "workers", working)
		file := filepath.Join(t.TempDir(), "bug.tar.gz")
		out, _ := b.ok("diagnose", "--file", file)
		assert.Equal(t, file+"\n", out)
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		assert.Contains(t, b.no(usage.ExitCode, "diagnose", "--file", file), "is there already")
	})
}

// progress says how the rollout of a pool goes.
func (b *bench) progress(pool, ok, reason string) {
	b.Helper()
	d := b.d(pool)
	d.Status = v1alpha1.MachineDeploymentStatus{ObservedGeneration: d.Generation, Machines: 1, UpToDate: 1}
	d.Status.Conditions = conditions(ok, reason)
	require.NoError(b, b.client.Status().Update(b.Context(), d))
}

func conditions(ok, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionStatus(ok), Reason: reason, Message: "as said", LastTransitionTime: metav1.Now()}}
}
