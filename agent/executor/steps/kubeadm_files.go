package steps

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubeadmBackup holds what an upgrade of the control plane is about to replace, keys among it.
const kubeadmBackup = "/var/lib/refit/backup/kubeadm"

// rewritten are the files that kubeadm upgrade replaces on a control plane. It syncs none of
// them: a loss of power soon after leaves some of them empty, such as the key of the API
// server, which nothing but a copy brings back.
var rewritten = append([]string{
	"manifests/etcd.yaml", "manifests/kube-apiserver.yaml", "manifests/kube-controller-manager.yaml", "manifests/kube-scheduler.yaml",
}, renewed...)

// keepFiles copies files of kubeadm durably, before its first effect.
func keepFiles(h *Host, backup string, names []string) error {
	for _, name := range names {
		if err := keepFile(h, backup, name); err != nil {
			return err
		}
	}
	return nil
}

// keepFile replaces what was kept before. It runs before the first effect, and until that
// is recorded again after a crash: the host still has what is to be kept.
func keepFile(h *Host, backup, name string) error {
	kept := path.Join(backup, name)
	content, mode, err := h.Files.Read(path.Join(kubernetesDir, name))
	if errors.Is(err, fs.ErrNotExist) {
		err = h.Files.Remove(kept)
	} else if err == nil {
		err = h.Files.Write(kept, content, mode.Perm())
	}
	if err != nil {
		return fmt.Errorf("keeping %s for the way back: %w", name, err)
	}
	return nil
}

// bringBack replaces a file by what was kept of it; one that was not there stays as it is.
func bringBack(h *Host, backup, name string) error {
	kept, mode, err := h.Files.Read(path.Join(backup, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // the caller says what for
	}
	file := path.Join(kubernetesDir, name)
	if now, _, err := h.Files.Read(file); err == nil && bytes.Equal(now, kept) {
		return nil
	}
	return h.Files.Write(file, kept, mode.Perm()) //nolint:wrapcheck // the caller says what for
}

// mendFiles brings back the files that a loss of power has left broken, a certificate
// together with its key, and says which. Whoever was cut short runs again on whole files.
func mendFiles(h *Host, backup string, names []string) (mended []string, err error) {
	for _, name := range names {
		if strings.HasSuffix(name, ".key") {
			continue // with its certificate
		}
		broken, err := isBroken(h, name)
		if err != nil {
			return mended, fmt.Errorf("looking whether %s is whole: %w", name, err)
		}
		if !broken {
			continue
		}
		for _, file := range withKey(name) {
			if err := bringBack(h, backup, file); err != nil {
				return mended, fmt.Errorf("bringing back %s, which is broken: %w", file, err)
			}
		}
		mended = append(mended, path.Join(kubernetesDir, name))
	}
	return mended, nil
}

func withKey(name string) []string {
	if base, ok := strings.CutSuffix(name, ".crt"); ok {
		return []string{name, base + ".key"}
	}
	return []string{name}
}

// isBroken says that a file, or the key that belongs to it, is there and holds nothing that
// anybody could have written.
func isBroken(h *Host, name string) (bool, error) {
	var contents [][]byte
	for _, file := range withKey(name) {
		content, _, err := h.Files.Read(path.Join(kubernetesDir, file))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err //nolint:wrapcheck // the caller says which file
		}
		if len(bytes.Trim(content, "\x00 \t\r\n")) == 0 {
			return true, nil
		}
		contents = append(contents, content)
	}
	if len(contents) == 1 {
		var object map[string]any
		return yaml.Unmarshal(contents[0], &object) != nil, nil
	}
	_, err := tls.X509KeyPair(contents[0], contents[1])
	return err != nil, nil
}

// afterCut mends what an earlier attempt of the step was cut short in.
func afterCut(r Run, backup string, names []string) (message string, err error) {
	if r.Attempt == 1 {
		return "", nil
	}
	mended, err := mendFiles(r.Host, backup, names)
	if err != nil || len(mended) == 0 {
		return "", err
	}
	return "a loss of power had left these files broken, and they were brought back before kubeadm went on: " + strings.Join(mended, ", "), nil
}

// syncKubeadm makes durable what kubeadm has written, which syncs nothing of it itself:
// certificates, manifests and the kubelet's configuration.
func syncKubeadm(h *Host) error {
	return errors.Join(h.Files.Sync(kubernetesDir), h.Files.Sync(path.Dir(kubeletConfig)))
}
