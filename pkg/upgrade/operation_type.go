package upgrade

import (
	"github.com/refit-dev/refit/api/v1alpha1"
)

// operationType names the work of a hop, for people: a host that left its spec is repaired;
// else a version that moves makes an upgrade, and what is left is a setting, or a reboot alone.
func operationType(m *v1alpha1.Machine, t v1alpha1.Target) v1alpha1.OperationType {
	if Drifted(m) != nil {
		return v1alpha1.OperationRepair
	}
	if RenewsOnly(t) {
		return v1alpha1.OperationRenewCertificates
	}
	versions := t
	versions.OS, versions.Certificates = false, false
	switch {
	case !Arrived(versions) || len(outdatedPackages(m.Spec, m.Status))+len(pendingSecurity(m.Spec, m.Status)) > 0:
		return v1alpha1.OperationUpgrade
	case configurationPending(m):
		return v1alpha1.OperationReconfigure
	case rebootOutstanding(m.Spec, m.Status):
		return v1alpha1.OperationReboot
	}
	return v1alpha1.OperationUpgrade
}
