package upgrade

import "fmt"

// Reasons of refusals. They are open strings for programs: more are added, none changes its meaning.
const (
	ReasonVersionNotFound         = "VersionNotFound"
	ReasonVersionUnknown          = "VersionUnknown"
	ReasonVersionInvalid          = "VersionInvalid"
	ReasonSkewViolated            = "SkewViolated"
	ReasonSkewUnknown             = "SkewUnknown"
	ReasonDowngradeRefused        = "DowngradeRefused"
	ReasonUnsupportedOS           = "UnsupportedOS"
	ReasonUnsupportedArchitecture = "UnsupportedArchitecture"
	ReasonPackageDBBroken         = "PackageDBBroken"
	ReasonPackageLockHeld         = "PackageLockHeld"
	ReasonHeldByOwner             = "HeldByOwner"
	ReasonHostPolicy              = "HostPolicy"
	ReasonNotPackaged             = "NotPackaged"
	ReasonKubeadmMissing          = "KubeadmMissing"
	ReasonSourceUnknown           = "SourceUnknown"
	ReasonSourceAmbiguous         = "SourceAmbiguous"
	ReasonDependencyUnsolvable    = "DependencyUnsolvable"
	ReasonRuntimeMismatch         = "RuntimeMismatch"
	ReasonRuntimeTooOld           = "RuntimeTooOld"
	ReasonRuntimeStopped          = "RuntimeStopped"
	ReasonRoleMismatch            = "RoleMismatch"
	ReasonNodeIdentityMismatch    = "NodeIdentityMismatch"
	ReasonPackageInvalid          = "PackageInvalid"
	ReasonProtectedPackage        = "ProtectedPackage"
	ReasonHopVersionUnknown       = "HopVersionUnknown"
	ReasonWaitingForControlPlane  = "WaitingForControlPlane"
	ReasonWaitingForFirst         = "WaitingForFirst"
	ReasonWaitingForKubelets      = "WaitingForKubelets"
	ReasonEtcdUnsupported         = "EtcdUnsupported"
	ReasonEtcdMinorSkipped        = "EtcdMinorSkipped"
	ReasonWaitingForEtcd          = "WaitingForEtcd"
	ReasonRestartPending          = "RestartPending"
	ReasonDriftReported           = "DriftReported"
	ReasonRebootStays             = "RebootStays"

	ReasonConfigurationInvalid     = "KubeletConfigurationInvalid"
	ReasonConfigurationRefused     = "KubeletConfigurationRefused"
	ReasonConfigurationUnsupported = "KubeletConfigurationUnsupported"
	ReasonCertificatesExternal     = "CertificatesExternal"
)

// refuse is a refusal that only another spec, or a person on the host, can lift.
func refuse(reason, format string, args ...any) *Blocked {
	return &Blocked{Reason: reason, Message: fmt.Sprintf(format, args...), Terminal: true}
}

// wait is a refusal that may pass by itself.
func wait(reason, format string, args ...any) *Blocked {
	return &Blocked{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Severities of findings; an Error blocks the plan.
const (
	SeverityInfo    = "Info"
	SeverityWarning = "Warning"
	SeverityError   = "Error"
)

func info(reason, format string, args ...any) Finding {
	return Finding{Severity: SeverityInfo, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func warning(reason, format string, args ...any) Finding {
	return Finding{Severity: SeverityWarning, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func failure(reason, format string, args ...any) Finding {
	return Finding{Severity: SeverityError, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
