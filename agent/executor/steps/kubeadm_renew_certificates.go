package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	kubernetesDir = "/etc/kubernetes"
	// certificateBackup holds what a renewal replaced last, keys among it: below a directory that only root reads.
	certificateBackup = "/var/lib/refit/backup/certificates"
)

// renewed are the files that kubeadm certs renew all may write.
var renewed = []string{
	"admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf",
	"pki/apiserver.crt", "pki/apiserver.key",
	"pki/apiserver-kubelet-client.crt", "pki/apiserver-kubelet-client.key",
	"pki/apiserver-etcd-client.crt", "pki/apiserver-etcd-client.key",
	"pki/front-proxy-client.crt", "pki/front-proxy-client.key",
	"pki/etcd/server.crt", "pki/etcd/server.key",
	"pki/etcd/peer.crt", "pki/etcd/peer.key",
	"pki/etcd/healthcheck-client.crt", "pki/etcd/healthcheck-client.key",
}

// kubeadmRenewCertificates is judged by the certificates on disk afterwards. What uses
// them still has the old ones loaded: the steps that follow restart it.
func kubeadmRenewCertificates(ctx context.Context, r Run) (string, error) {
	if err := r.Host.Kubeadm.RenewCertificates(ctx); err != nil {
		return "", fail("CertificateRenewalFailed", "%v", err)
	}
	facts, err := r.Host.Facts.Facts(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("reading the facts of the host: %w", err)
	}
	return "", renewedAll(*r.Step.Renewal, facts, time.Now())
}

// renewedAll says that nothing that was due is due any more. kubeadm skips without an
// error what it cannot renew.
func renewedAll(wish upgrade.Renewal, facts upgrade.Facts, now time.Time) error {
	before, err := time.ParseDuration(wish.Before)
	if err != nil {
		return fmt.Errorf("reading how long certificates must be good for: %w", err)
	}
	for _, due := range wish.Due {
		at := slices.IndexFunc(facts.Certs, func(c upgrade.CertFacts) bool { return c.Path == due.Path })
		if at < 0 {
			return fail("CertificateNotRenewed", "the certificate %s cannot be read any more%s", due.Path, problems(facts))
		}
		end := facts.Certs[at].NotAfter
		if !end.After(due.NotAfter) {
			return fail("CertificateNotRenewed", "kubeadm reported success, and the certificate %s still ends on %s", due.Path, end.Format(time.RFC3339))
		}
		if end.Sub(now) < before {
			return fail("CertificateTooShort", "kubeadm issued %s until %s, and spec.kubeadm.renewCertificatesBefore %s would have it renewed again at once: make that shorter than the certificateValidityPeriod of kubeadm's ClusterConfiguration", due.Path, end.Format(time.RFC3339), wish.Before)
		}
	}
	return nil
}

// captureCertificates keeps the files themselves; keys have no place in a journal.
func captureCertificates(_ context.Context, r Run) (journal.Undo, error) {
	for _, name := range renewed {
		if err := keepCertificate(r.Host, name); err != nil {
			return journal.Undo{}, err
		}
	}
	return journal.Undo{Steps: []upgrade.Step{{Kind: upgrade.StepRestoreCertificates}}}, nil
}

// keepCertificate replaces what an earlier renewal has kept. It runs before the first
// effect, and until that is recorded again after a crash: the host still has what is to be kept.
func keepCertificate(h *Host, name string) error {
	kept := path.Join(certificateBackup, name)
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

// restoreCertificates brings back what was kept: all that can be, also where one cannot.
func restoreCertificates(_ context.Context, r Run) (string, error) {
	var errs []error
	for _, name := range renewed {
		if err := restoreCertificate(r.Host, name); err != nil {
			errs = append(errs, fmt.Errorf("bringing back %s: %w", name, err))
		}
	}
	return "", errors.Join(errs...)
}

func restoreCertificate(h *Host, name string) error {
	kept, mode, err := h.Files.Read(path.Join(certificateBackup, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there was none
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
