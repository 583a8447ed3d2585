package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// verify looks until everything is as expected. A component that does not answer yet
// is waited for; one that answers with another version is not going to change.
func verify(ctx context.Context, r Run) (string, error) {
	if r.Step.Expect == nil {
		return "", nil
	}
	want := *r.Step.Expect
	if err := bootIs(ctx, r.Host, want); err != nil {
		return "", err
	}
	if err := packagesAre(ctx, r.Host, want.Packages); err != nil {
		return "", err
	}
	if err := settled(ctx, r.Poll, func(ctx context.Context) error { return componentsAre(ctx, r.Host, want) }); err != nil {
		return "", err
	}
	if err := configured(ctx, r.Host, want.KubeletConfiguration); err != nil {
		return "", err
	}
	if !want.StartSandbox {
		return "", nil
	}
	if err := oneCgroupDriver(ctx, r.Host); err != nil {
		return "", err
	}
	if err := r.Host.Runtime.ProbeSandbox(ctx); err != nil {
		return "", fail("SandboxFailed", "the container runtime is ready but cannot start a sandbox: %v", err)
	}
	return "", nil
}

// oneCgroupDriver looks at what the restarted runtime really uses: two drivers on one host
// restart every pod again and again, which no sandbox of a moment shows.
func oneCgroupDriver(ctx context.Context, h *Host) error {
	facts, err := h.Facts.Facts(ctx, nil)
	if err != nil {
		return fmt.Errorf("reading the facts of the host: %w", err)
	}
	if clash := facts.CgroupDriverClash(); clash != "" {
		return fail(upgrade.FindingCgroupDriver, "%s since its restart, which restarts pods again and again", clash)
	}
	return nil
}

func bootIs(ctx context.Context, h *Host, want upgrade.Expectation) error {
	if want.BootIDNot == "" {
		return nil
	}
	boot, err := h.Boot.ID(ctx)
	if err != nil {
		return fmt.Errorf("reading the boot id: %w", err)
	}
	if boot == want.BootIDNot {
		return fail("NotRebooted", "the host is still in boot %s", boot)
	}
	return nil
}

func packagesAre(ctx context.Context, h *Host, changes []upgrade.PackageChange) error {
	if len(changes) == 0 {
		return nil
	}
	missing, err := remainingChanges(ctx, h, changes)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fail("PackageVersionMismatch", "not as wanted: %s", describe(missing))
	}
	return nil
}

func componentsAre(ctx context.Context, h *Host, want upgrade.Expectation) error {
	if want.Runtime != "" || want.RuntimeName != "" || want.StartSandbox {
		if err := h.Runtime.WaitReady(ctx, time.Minute); err != nil {
			return fail("RuntimeNotReady", "the container runtime is not ready: %v", err)
		}
	}
	if err := runtimeRuns(ctx, h, want.RuntimeName, want.Runtime); err != nil {
		return err
	}
	if want.Kubelet != "" {
		if err := works(ctx, h, KubeletUnit); err != nil {
			return err
		}
	}
	if err := kubeletRuns(ctx, h, want.Kubelet); err != nil {
		return err
	}
	if err := controlPlaneRuns(ctx, h, want.ControlPlane); err != nil {
		return err
	}
	if err := etcdRuns(ctx, h, want.Etcd); err != nil {
		return err
	}
	return etcdMemberIs(ctx, h, want.EtcdMember)
}

// mismatches in a row that are believed: a process that is being replaced may answer
// once more.
const believedMismatches = 10

// settled is await that gives up early on a version that is there and is another one.
func settled(ctx context.Context, poll time.Duration, look func(context.Context) error) error {
	var final error
	row := 0
	err := await(ctx, poll, func(ctx context.Context) error {
		err := look(ctx)
		var f *Failure
		if !errors.As(err, &f) || !strings.HasSuffix(f.Reason, "Mismatch") {
			row = 0
			return err
		}
		if row++; row < believedMismatches {
			return err
		}
		final = err
		return nil
	})
	if final != nil {
		return final
	}
	return err
}
