package v1alpha1

// Condition types of a Machine. Each has one writer.
const (
	// ConditionStaged (agent): everything the frozen plan needs is on the host.
	ConditionStaged = "Staged"
	// ConditionDrifted (agent): the host left its spec without an operation of ours.
	ConditionDrifted = "Drifted"
	// ConditionHeld (agent): the host takes no grant now. Its owner refuses them with
	// /etc/refit/hold (HoldFile), or another process holds the package lock (PackageLockHeld).
	ConditionHeld = "Held"
	// ConditionRestartPending (agent): newer on disk than what runs.
	ConditionRestartPending = "RestartPending"
	// ConditionConflictingManager (agent): another updater owns the host too.
	ConditionConflictingManager = "ConflictingManager"
	// ConditionPackagesBroken (agent): a broken transaction left packages half installed.
	ConditionPackagesBroken = "PackagesBroken"
	// ConditionCertificatesExpiring (agent): a certificate of the host runs out soon.
	ConditionCertificatesExpiring = "CertificatesExpiring"
	// ConditionSecurityUpdatesPending (agent): the distribution has security updates that the host
	// does not have, and spec.os.securityUpdates wants them.
	ConditionSecurityUpdatesPending = "SecurityUpdatesPending"

	// ConditionReady (coordinator): the machine serves, or could.
	ConditionReady = "Ready"
	// ConditionUpToDate (coordinator): what runs is what spec wants.
	ConditionUpToDate = "UpToDate"
	// ConditionDrained (coordinator): pods have left for the work at hand.
	ConditionDrained = "Drained"
	// ConditionHealthy (coordinator): Node, DaemonSets and agent agree that the host is well.
	ConditionHealthy = "Healthy"
	// ConditionStalled (coordinator): nothing goes on without a new spec or a retry.
	ConditionStalled = "Stalled"
	// ConditionOverridden (coordinator): another manager owns a templated field.
	ConditionOverridden = "Overridden"
	// ConditionSkewViolated (coordinator): the kubelet is newer than the oldest API server, or
	// too far behind the newest.
	ConditionSkewViolated = "SkewViolated"
	// ConditionForecast (coordinator): whether a drain could succeed now.
	ConditionForecast = "DrainPossible"
	// ConditionWaiting (coordinator): which gate holds the machine back.
	ConditionWaiting = "Waiting"
)

// AgentConditions are the condition types that only the agent of the host writes.
var AgentConditions = []string{
	ConditionStaged, ConditionDrifted, ConditionHeld, ConditionRestartPending,
	ConditionConflictingManager, ConditionPackagesBroken, ConditionCertificatesExpiring,
	ConditionSecurityUpdatesPending,
}

// Unknown is the version of something that could not be read or understood. It blocks a plan and never triggers one.
const Unknown = "Unknown"
