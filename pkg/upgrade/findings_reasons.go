package upgrade

// Reasons of findings, each described in docs/planning.md. They are open strings for
// programs: more are added, none changes its meaning.
const (
	// What could not be found out.
	FindingFactUnknown = "FactUnknown"
	FindingSkewUnknown = ReasonSkewUnknown

	// What is not as it should be, whether there is work or not.
	FindingSkewViolated   = ReasonSkewViolated
	FindingRestartPending = ReasonRestartPending

	// The kubelet and what configures it.
	FindingKubeletDown    = "KubeletNotRunning"
	FindingFlagRemoved    = "KubeletFlagRemoved"
	FindingGateRemoved    = "FeatureGateRemoved"
	FindingGateLocked     = "FeatureGateLocked"
	FindingKubeletState   = "KubeletStateInvalid"
	FindingCgroupV1       = "CgroupV1Refused"
	FindingKubectlLeft    = "KubectlLeftAlone"
	FindingDrainSkipped   = "DrainSkipped"
	FindingKubeadmMissing = ReasonKubeadmMissing
	FindingNotJoined      = "NotJoined"
	FindingOverruled      = "KubeletSettingOverruled"
	FindingNodeIgnored    = "NodeSettingsIgnored"

	// The container runtime.
	FindingRuntimeLosing    = "RuntimeLosingSupport"
	FindingCgroupDriver     = "CgroupDriverMismatch"
	FindingRuntimeConfig    = "RuntimeConfigRefused"
	FindingRuntimeSetting   = "RuntimeSettingIgnored"
	FindingSandboxImage     = "SandboxImageMismatch"
	FindingRuntimeEndpoint  = "RuntimeEndpointMismatch"
	FindingRuntimeDowngrade = "PatchDowngrade"

	// The control plane.
	FindingDuplicateStaticPod = "DuplicateStaticPod"
	FindingRemovedAPI         = "RemovedAPIRequested"
	FindingKnownBadRelease    = "KnownBadRelease"
	FindingPhaseNotSkippable  = "PhaseNotSkippable"
	FindingEtcdTooOld         = "EtcdTooOld"
	FindingEtcdMembership     = "EtcdMembershipAtRisk"

	// The members of etcd.
	FindingEtcdNoQuorum     = "EtcdNoQuorum"
	FindingEtcdUnhealthy    = "EtcdMemberUnhealthy"
	FindingEtcdBehind       = "EtcdMemberBehind"
	FindingEtcdLearner      = "EtcdLearner"
	FindingEtcdQuorumAtRisk = "EtcdQuorumAtRisk"
	FindingEtcdTwoMembers   = "EtcdTwoMembers"
	FindingEtcdOutage       = "EtcdOutage"
	FindingEtcdAlarm        = "EtcdAlarm"

	// Certificates.
	FindingCertificateExpired  = "CertificateExpired"
	FindingCertificateExpiring = "CertificateExpiring"

	// Packages and room for them.
	FindingPackageDowngrade        = "PackageDowngrade"
	FindingPackageLockHeld         = ReasonPackageLockHeld
	FindingPackageHeld             = "PackageHeld"
	FindingSecurityUpdatesUnknown  = "SecurityUpdatesUnknown"
	FindingSecurityUpdateHeld      = "SecurityUpdateHeld"
	FindingNoSpace                 = "NoSpace"
	FindingNoRollbackPackage       = "NoRollbackPackage"
	FindingTransactionRefused      = "TransactionRefused"
	FindingTransactionAddsPackage  = "UnexpectedPackage"
	FindingTransactionWouldRemove  = "WouldRemove"
	FindingTransactionLeavesAsItIs = "NotApplied"
	FindingImageNotStaged          = "ImageNotStaged"

	// The host and its owner.
	FindingConflictingManager = "ConflictingManager"
	FindingHeldByOwner        = ReasonHeldByOwner
	FindingHostPolicy         = ReasonHostPolicy
	FindingRebootNotAllowed   = "RebootNotAllowed"
	FindingRebootRequired     = "RebootRequired"
	FindingRebootStays        = ReasonRebootStays
)
