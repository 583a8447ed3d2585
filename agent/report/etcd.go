package report

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// observedEtcd keeps the name of a member that does not answer: by it the others' reports are
// about this host.
func observedEtcd(facts upgrade.Facts, before *v1alpha1.ObservedEtcd) *v1alpha1.ObservedEtcd {
	now := facts.ObservedEtcd()
	if now != nil && now.Problem != "" && before != nil {
		now.Member = before.Member
	}
	return now
}
