package steps

import (
	"context"
	"errors"
	"fmt"
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
	mended, err := afterCut(r, certificateBackup, renewed)
	if err != nil {
		return "", err
	}
	if err := r.Host.Kubeadm.RenewCertificates(ctx); err != nil {
		return "", fail("CertificateRenewalFailed", "%v", err)
	}
	if err := syncKubeadm(r.Host); err != nil {
		return "", err
	}
	facts, err := r.Host.Facts.Facts(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("reading the facts of the host: %w", err)
	}
	return mended, renewedAll(*r.Step.Renewal, facts, time.Now())
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
	if err := keepFiles(r.Host, certificateBackup, renewed); err != nil {
		return journal.Undo{}, err
	}
	return journal.Undo{Steps: []upgrade.Step{{Kind: upgrade.StepRestoreCertificates}}}, nil
}

// restoreCertificates brings back what was kept: all that can be, also where one cannot.
func restoreCertificates(_ context.Context, r Run) (string, error) {
	var errs []error
	for _, name := range renewed {
		if err := bringBack(r.Host, certificateBackup, name); err != nil {
			errs = append(errs, fmt.Errorf("bringing back %s: %w", name, err))
		}
	}
	return "", errors.Join(errs...)
}
