package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// preflightSince is the first release whose kubeadm can run the checks of both
	// upgrades alone, and dry: it then creates no Job in the cluster, pulls no image and
	// writes no file but into dryRunDir.
	preflightSince   = "v1.32.0"
	dryRunDir        = "KUBEADM_UPGRADE_DRYRUN_DIR"
	preflightTimeout = 5 * time.Minute
)

// Reasons of what the checks found.
const (
	reasonPreflightFailed = "KubeadmPreflightFailed"
	reasonPreflightNotRun = "KubeadmPreflightNotRun"
)

// passing are checks of what changes by itself: the other machines, the runtime, a registry.
var passing = []string{"CreateJob", "ControlPlaneNodesReady", "StaticPodManifest", "ContainerRuntimeVersion", "ImagePull"}

// Preflight runs the checks that kubeadm, a program that may not be installed yet, makes
// before an upgrade, and nothing else: what it would refuse is known before anybody is
// drained for it. What only another host or spec can change is a finding; an error may
// pass by itself. A run that fails otherwise than by its checks decides nothing.
func (k *Kubeadm) Preflight(ctx context.Context, program string, u upgrade.KubeadmUpgrade) ([]upgrade.Finding, error) {
	if err := check(u); err != nil {
		return nil, err
	}
	if since, _ := upgrade.ParseKubernetes(preflightSince); older(u.Version, since) {
		return nil, nil
	}
	dir, err := k.scratch()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the next run makes another one
	argv, err := preflightArguments(dir, program, u)
	if err != nil {
		return nil, err
	}
	result, err := k.Runner.Run(ctx, command.Command{Argv: argv, Env: []string{dryRunDir + "=" + dir}, Timeout: preflightTimeout})
	if err == nil {
		return nil, nil
	}
	if ctx.Err() != nil || errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("running the preflight checks of kubeadm %s: %w", u.Version, err)
	}
	return preflightVerdict(u.Version, result.Output())
}

func older(version string, since upgrade.Version) bool {
	v, ok := upgrade.ParseKubernetes(version)
	return ok && v.LessThan(since)
}

func (k *Kubeadm) scratch() (string, error) {
	parent := filepath.Join(k.Root, k.State, "kubeadm")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("making the directory of kubeadm's configuration: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "preflight-")
	if err != nil {
		return "", fmt.Errorf("making a place for kubeadm's dry run: %w", err)
	}
	return dir, nil
}

// preflightArguments asks for a dry run by the file: not every phase has the flag.
func preflightArguments(dir, program string, u upgrade.KubeadmUpgrade) ([]string, error) {
	node := map[string]any{"dryRun": true, "imagePullPolicy": "IfNotPresent"}
	if len(u.IgnorePreflightErrors) > 0 {
		node["ignorePreflightErrors"] = u.IgnorePreflightErrors
	}
	apply := map[string]any{"kubernetesVersion": u.Version}
	for key, value := range node {
		apply[key] = value
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "UpgradeConfiguration", "apply": apply, "node": node,
	})
	if err != nil {
		return nil, fmt.Errorf("writing kubeadm's configuration: %w", err)
	}
	path := filepath.Join(dir, "preflight.yaml")
	if err := files.WriteAtomic(path, data, 0o600); err != nil {
		return nil, err //nolint:wrapcheck // says which file
	}
	if u.Role == v1alpha1.KubeadmFirst {
		return []string{program, "upgrade", "apply", "phase", "preflight", "--yes", "--config=" + path}, nil
	}
	return []string{program, "upgrade", "node", "phase", "preflight", "--config=" + path}, nil
}

func preflightVerdict(version, output string) ([]upgrade.Finding, error) {
	checks := failedChecks(output)
	if len(checks) == 0 {
		return []upgrade.Finding{{Severity: upgrade.SeverityWarning, Reason: reasonPreflightNotRun, Message: fmt.Sprintf(
			"the preflight checks of kubeadm %s could not be made before the upgrade: %s", version, reason(output))}}, nil
	}
	message := fmt.Sprintf("kubeadm %s would refuse the upgrade: preflight checks %s failed (each can be named in spec.kubeadm.ignorePreflightErrors): %s",
		version, strings.Join(checks, ", "), reason(output))
	if !slices.ContainsFunc(checks, func(id string) bool { return !slices.Contains(passing, id) }) {
		return nil, &upgrade.Blocked{Reason: reasonPreflightFailed, Message: message}
	}
	return []upgrade.Finding{{Severity: upgrade.SeverityError, Reason: reasonPreflightFailed, Message: message}}, nil
}
