package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// kubeadm that fails is run once more, never in a loop; an attempt that follows one
// that was cut short has one run.
const maxKubeadmRuns = 2

// settleTimeout is how long static pods may take to answer with the new version after
// kubeadm has ended: an API server restarts, and the kubelet backs off.
const settleTimeout = 5 * time.Minute

// kubeadmUpgrade is judged by what runs afterwards and by whether kubeadm came to its
// end: the static pods may be new while its later phases (its config maps, the kubelet's
// configuration, the addons) are missing. So on a control plane that is at the target
// already kubeadm is not run, unless its last run did not end well, in whichever operation
// that was: one more of the same version is quick and completes it.
func kubeadmUpgrade(ctx context.Context, r Run) (string, error) {
	k := *r.Step.Kubeadm
	mended := ""
	if k.ControlPlane {
		var err error
		if mended, err = afterCut(r, kubeadmBackup, rewritten); err != nil {
			return "", err
		}
	}
	if k.ControlPlane && controlPlaneAt(ctx, r.Host, k.Version) == nil {
		unfinished, err := r.Host.Kubeadm.Unfinished(ctx)
		if err != nil {
			return "", err
		}
		if unfinished == nil {
			return "the control plane runs " + k.Version + " already", nil
		}
	}
	if k.ControlPlane {
		if err := stillGuarded(ctx, r); err != nil {
			return "", err
		}
	}
	message, err := judgeKubeadm(ctx, r, k, runKubeadm(ctx, r, k))
	if err == nil {
		err = syncKubeadm(r.Host)
	}
	return cmp.Or(message, mended), err
}

func runKubeadm(ctx context.Context, r Run, k upgrade.KubeadmUpgrade) (err error) {
	runs := 1
	if r.Attempt == 1 {
		runs = maxKubeadmRuns
	}
	for run := range runs {
		if run > 0 && k.ControlPlane {
			_ = settle(ctx, r, k.Version, settled) // wherever it stands: the next run goes on from there
		}
		if err = r.Host.Kubeadm.Upgrade(ctx, k); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// settle waits until the static pods of this host answer with a version. kubeadm may end
// with an error because the API server that it has just replaced is not up again: a run
// that comes before it is would fail in the same way, and what kubeadm does after the
// static pods (its config maps, the addons) would be left out.
func settle(ctx context.Context, r Run, version string, wait func(context.Context, time.Duration, func(context.Context) error) error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return wait(ctx, r.Poll, func(ctx context.Context) error { return controlPlaneAt(ctx, r.Host, version) })
}

func judgeKubeadm(ctx context.Context, r Run, k upgrade.KubeadmUpgrade, runErr error) (string, error) {
	if !k.ControlPlane {
		return "", runErr // nothing of a worker runs kubeadm's version; the kubelet is verified on its own
	}
	wait := await
	if runErr != nil {
		wait = settled // after an error, components that answer with the old version stay at it
	}
	err := settle(ctx, r, k.Version, wait)
	switch {
	case err == nil && runErr == nil:
		return "", nil
	case err == nil:
		return "", fail("ControlPlaneUpgradeFailed", "the static pods run %s, but kubeadm did not come to its end, so its config maps, the kubelet's configuration or the addons may be of the old version: %v; a retry runs it again", k.Version, runErr)
	case runErr != nil:
		return "", fail("ControlPlaneUpgradeFailed", "%v; what runs: %v%s", runErr, err, etcdSays(ctx, r.Host))
	}
	return "", fail("ControlPlaneUpgradeFailed", "kubeadm reported success, but: %v%s", err, etcdSays(ctx, r.Host))
}

// controlPlaneAt says that all three components of this host run a version and answer.
func controlPlaneAt(ctx context.Context, h *Host, version string) error {
	if err := controlPlaneRuns(ctx, h, version); err != nil {
		return err
	}
	facts, err := h.Facts.Facts(ctx, nil)
	if err != nil {
		return fmt.Errorf("reading the facts of the host: %w", err)
	}
	if facts.Control == nil {
		return errors.New("this host shows no control plane" + problems(facts))
	}
	for _, c := range []struct{ name, got string }{
		{"controller manager", facts.Control.ControllerManager},
		{"scheduler", facts.Control.Scheduler},
	} {
		if !upgrade.SameKubernetes(c.got, version) {
			return fail("ControlPlaneVersionMismatch", "this host's %s runs %q, wanted %s%s", c.name, c.got, version, problems(facts))
		}
	}
	return nil
}

// captureKubeadm keeps the kubelet's files that kubeadm rewrites for the new minor.
// The control plane itself does not go back: etcd's data may have moved.
func captureKubeadm(_ context.Context, r Run) (journal.Undo, error) {
	undo := journal.Undo{}
	if r.Step.Kubeadm.ControlPlane {
		undo.None = "the control plane does not go back from " + r.Step.Kubeadm.Version + ": etcd's data may have moved on"
		if err := keepFiles(r.Host, kubeadmBackup, rewritten); err != nil {
			return undo, err
		}
	}
	for _, file := range []string{kubeletConfig, kubeadmFlags} {
		back, err := restoreFile(r.Host, file)
		if err != nil {
			return undo, err
		}
		if !back.File.Remove {
			undo.Steps = append(undo.Steps, back)
		}
	}
	return undo, nil
}
