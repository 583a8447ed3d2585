package coordinator

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refit runs kubectl refit as an operator would.
func (w *world) refit(args ...string) (out, errs string, code int) {
	w.t.Helper()
	if w.kubeconfig == "" {
		w.kubeconfig = w.server.WriteKubeconfig(w.t, w.t.TempDir(), "kubernetes-admin", "system:masters")
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(cli, append([]string{"--kubeconfig", w.kubeconfig, "--cache-dir", w.dir, "-n", namespace}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func (w *world) refitOK(args ...string) (out, errs string) {
	w.t.Helper()
	out, errs, code := w.refit(args...)
	require.Zero(w.t, code, "%v: %s", args, errs)
	return out, errs
}

// untilRuns waits for what the hosts run: before a template is written into them, Machines
// are up to date with the one before.
func (w *world) untilRuns(kubelet string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.until(name+" runs "+kubelet, func() bool { return w.hosts[name].kubeletIs(kubelet) })
	}
	w.untilUpToDate(names...)
}

func TestUndoBringsAPoolBackToWhatItsMachinesRan(t *testing.T) {
	w := fleetOfThree(t)
	w.pool("workers", workerAt(oldK8s), func(d *v1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{"kubernetes.io/change-cause": "as adopted"}
	})
	w.start()
	w.untilUpToDate("w1", "w2", "w3")
	_, errs, code := w.refit("undo", "workers", "--yes")
	assert.Equal(t, usage.ExitRefused, code)
	assert.Contains(t, errs, "pool workers has no earlier revision to go back to")

	w.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Annotations["kubernetes.io/change-cause"] = "to 1.37"
		d.Spec.Template.Spec.Versions.Kubelet = newK8s
	})
	w.untilRevisions("workers", 1, 2)
	w.untilRuns(newK8s, "w1", "w2", "w3")
	fresh := w.host("w4", "workers", v1alpha1.RoleWorker) // has never run the old one under Refit
	fresh.set(func(h *host) { h.Kubelet = newK8s })
	w.untilUpToDate("w4")

	out, _ := w.refitOK("history", "workers")
	assert.Regexp(t, `(?m)^1 +\S+ +`+oldK8s+` +as adopted$`, out)
	assert.Regexp(t, `(?m)^2 \* +\S+ +`+newK8s+` +to 1.37$`, out)
	out, _ = w.refitOK("history", "workers", "--revision", "1", "-o", "json")
	var one struct{ Template v1alpha1.MachineTemplate }
	require.NoError(t, json.Unmarshal([]byte(out), &one))
	assert.EqualValues(t, oldK8s, one.Template.Spec.Versions.Kubelet)
	_, errs, code = w.refit("undo", "workers", "--to-revision", "7", "--yes")
	assert.Equal(t, usage.ExitCode, code)
	assert.Contains(t, errs, "pool workers has no revision 7: there are 1, 2")
	_, errs, code = w.refit("undo", "workers")
	assert.Equal(t, usage.ExitCode, code, "nobody is there to be asked")
	assert.Contains(t, errs, "give --yes")
	out, errs = w.refitOK("undo", "workers", "--dry-run=server")
	assert.Equal(t, "machinedeployment.refit.dev/workers rolled back to revision 1 (server dry run)\n", out)
	assert.Regexp(t, `(?m)^-.*"kubelet": "`+newK8s+`"`, errs)
	assert.Regexp(t, `(?m)^\+.*"kubelet": "`+oldK8s+`"`, errs)

	out, errs = w.refitOK("undo", "workers", "--yes")
	assert.Equal(t, "machinedeployment.refit.dev/workers rolled back to revision 1\n", out)
	assert.Contains(t, errs, "machine w4 will not follow now (DowngradeRefused)")
	assert.NotContains(t, errs, "machine w1 will not follow")
	w.untilRuns(oldK8s, "w1", "w2", "w3")
	assert.Equal(t, "as adopted", w.deployment("workers").Annotations["kubernetes.io/change-cause"])
	w.untilRevisions("workers", 2, 3)
	w.until("w4 says why it stays", func() bool { return w.condition("w4", v1alpha1.ConditionUpToDate).Reason == "DowngradeRefused" })
	out, _ = w.refitOK("undo", "workers", "--to-revision", "3")
	assert.Contains(t, out, "already at revision 3")

	out, _ = w.refitOK("history", "machine/w1")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 3, "two operations below the heads")
	assert.Regexp(t, `Successful +`+newK8s+`,containerd=\S+ +`+oldK8s+` .*Apply=3s Restart=1s Ready=`, lines[1])
	assert.Regexp(t, `Successful +`+oldK8s+`,containerd=\S+ +`+newK8s+` `, lines[2])
}

func TestAControlPlaneIsNotUndone(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "cp", v1alpha1.RoleControlPlane)
	w.host("w1", "", v1alpha1.RoleWorker) // takes the pods
	w.pool("cp", planeAt(oldK8s))
	w.start()
	w.untilRevisions("cp", 1)
	w.edit("cp", func(d *v1alpha1.MachineDeployment) { *d.Spec.Template.Spec.Versions = planeAt(newK8s) })
	w.untilRevisions("cp", 1, 2)
	w.untilRuns(newK8s, "cp1")
	before := w.deployment("cp").Generation
	_, errs, code := w.refit("undo", "cp", "--yes")
	assert.Equal(t, usage.ExitRefused, code)
	assert.Contains(t, errs, "this cannot be undone: machine cp1: the API server of cp1 runs "+newK8s+" and spec wants "+oldK8s+": a control plane never goes back")
	assert.Equal(t, before, w.deployment("cp").Generation)
}
