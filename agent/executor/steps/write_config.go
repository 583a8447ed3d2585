package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	kubeletConfig = "/var/lib/kubelet/config.yaml"
	kubeadmFlags  = "/var/lib/kubelet/kubeadm-flags.env"
)

// Files that a plan may write. Static pod manifests are not among them: whoever
// writes those runs anything.
var managedDirs = []string{
	"/etc/kubernetes/kubelet.conf.d/",
	"/etc/systemd/system/kubelet.service.d/",
	"/etc/systemd/system/containerd.service.d/",
	"/etc/systemd/system/crio.service.d/",
}

var managedFiles = map[string]bool{kubeletConfig: true, kubeadmFlags: true}

// ManagedPath says whether a plan may write a file.
func ManagedPath(p string) bool {
	if path.Clean(p) != p {
		return false
	}
	if managedFiles[p] {
		return true
	}
	for _, dir := range managedDirs {
		if strings.HasPrefix(p, dir) && !strings.Contains(strings.TrimPrefix(p, dir), "/") {
			return true
		}
	}
	return false
}

// PlannedPath says the same of a plan that is not a way back: the kubelet's own files are
// kubeadm's to write, and only put back as they were.
func PlannedPath(p string) bool { return ManagedPath(p) && !managedFiles[p] && path.Ext(p) == ".conf" }

func writeConfig(_ context.Context, r Run) (string, error) {
	f := r.Step.File
	if f.Remove {
		if err := r.Host.Files.Remove(f.Path); err != nil {
			return "", fmt.Errorf("removing %s: %w", f.Path, err)
		}
		return "", nil
	}
	now, mode, err := r.Host.Files.Read(f.Path)
	if err == nil && bytes.Equal(now, []byte(f.Content)) && mode.Perm() == fs.FileMode(f.Mode) {
		return "", nil
	}
	if err := r.Host.Files.Write(f.Path, []byte(f.Content), fs.FileMode(f.Mode)); err != nil {
		return "", fmt.Errorf("writing %s: %w", f.Path, err)
	}
	return "", nil
}

func captureConfig(_ context.Context, r Run) (journal.Undo, error) {
	back, err := restoreFile(r.Host, r.Step.File.Path)
	if err != nil {
		return journal.Undo{}, err
	}
	return journal.Undo{Steps: []upgrade.Step{back}}, nil
}

// restoreFile is the step that brings a file back to what it is now.
func restoreFile(h *Host, file string) (upgrade.Step, error) {
	content, mode, err := h.Files.Read(file)
	change := &upgrade.FileChange{Path: file, Content: string(content), Mode: uint32(mode.Perm())}
	if errors.Is(err, fs.ErrNotExist) {
		change, err = &upgrade.FileChange{Path: file, Remove: true}, nil
	}
	if err != nil {
		return upgrade.Step{}, fmt.Errorf("keeping what %s holds now: %w", file, err)
	}
	return upgrade.Step{Kind: upgrade.StepWriteConfig, File: change}, nil
}
