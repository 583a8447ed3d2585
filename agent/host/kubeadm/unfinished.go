package kubeadm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// unfinishedPath is there from before a run on a control plane until kubeadm has said
// that all of it is done. The versions that run cannot tell that: kubeadm replaces the
// static pods first, and then writes its config maps, the kubelet's configuration and
// the addons. A crash between kubeadm's end and the removal costs one more run, which is quick.
func (k *Kubeadm) unfinishedPath() string {
	return filepath.Join(k.Root, k.State, "kubeadm", "unfinished.json")
}

func (k *Kubeadm) begun(u upgrade.KubeadmUpgrade) error {
	if !u.ControlPlane {
		return nil // a worker's kubelet, which follows, shows whether it was done
	}
	data, err := json.Marshal(upgrade.UnfinishedFacts{Version: u.Version, Role: u.Role})
	if err != nil {
		return fmt.Errorf("recording that kubeadm begins: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(k.unfinishedPath()), 0o700); err != nil {
		return fmt.Errorf("recording that kubeadm begins: %w", err)
	}
	return files.WriteAtomic(k.unfinishedPath(), append(data, '\n'), 0o600)
}

func (k *Kubeadm) ended(u upgrade.KubeadmUpgrade) error {
	if !u.ControlPlane {
		return nil
	}
	return files.Remove(k.unfinishedPath())
}

// Unfinished is the last run on this control plane, if it did not end well; nil when it did, or there was none.
func (k *Kubeadm) Unfinished(context.Context) (*upgrade.UnfinishedFacts, error) {
	data, err := os.ReadFile(k.unfinishedPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing is unfinished, and that is known
	}
	if err != nil {
		return nil, fmt.Errorf("looking for an unfinished run of kubeadm: %w", err)
	}
	run := &upgrade.UnfinishedFacts{}
	err = json.Unmarshal(data, run)
	if err == nil {
		err = check(upgrade.KubeadmUpgrade{Version: run.Version, Role: run.Role})
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w: it is damaged; run kubeadm upgrade for the version that the API server has, then remove the file", k.unfinishedPath(), err)
	}
	return run, nil
}
