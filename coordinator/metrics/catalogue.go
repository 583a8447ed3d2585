package metrics

// Kinds of metrics.
const (
	Gauge     = "gauge"
	Counter   = "counter"
	Histogram = "histogram"
)

// Definition of one metric.
type Definition struct {
	Name, Kind, Help string
	Labels           []string
}

// Names of the metrics.
const (
	machines           = "refit_machines"
	machinesUpToDate   = "refit_machines_up_to_date"
	machineVersions    = "refit_machine_versions"
	machinesWaiting    = "refit_machines_waiting"
	certificates       = "refit_machines_certificates_expiring"
	certificateExpiry  = "refit_certificate_expiry_timestamp_seconds"
	drainsBlocked      = "refit_drains_blocked"
	slots              = "refit_slots"
	oldestSlot         = "refit_oldest_slot_reserved_timestamp_seconds"
	stopped            = "refit_stopped"
	rolloutProgress    = "refit_rollout_progress_ratio"
	rolloutHalted      = "refit_rollout_halted"
	rolloutPaused      = "refit_rollout_paused"
	budgetUnavailable  = "refit_budget_unavailable_machines"
	budgetAllowed      = "refit_budget_allowed_unavailable_machines"
	operations         = "refit_operations_total"
	operationDuration  = "refit_operation_phase_duration_seconds"
	collectorSucceeded = "refit_collector_success"
)

// Definitions are all metrics of Refit's own, in the order of the documentation.
func Definitions() []Definition {
	pool := []string{"namespace", "machinedeployment"}
	budget := []string{"namespace", "kind", "name"}
	return []Definition{
		{machines, Gauge, "Machines by pool and phase; the pool is empty for those without one.", append(pool[:2:2], "phase")},
		{machinesUpToDate, Gauge, "Machines that run what their spec wants.", pool},
		{machineVersions, Gauge, "Machines by the version that is observed of a component.", []string{"namespace", "component", "version"}},
		{machinesWaiting, Gauge, "Machines that a gate holds back, by the gate's reason.", []string{"namespace", "reason"}},
		{certificates, Gauge, "Machines with a certificate that ends soon, has ended, or is due for renewal.", []string{"namespace", "reason"}},
		{certificateExpiry, Gauge, "When the first certificate of the pool's machines ends; absent where none has told.", pool},
		{drainsBlocked, Gauge, "Machines whose last drain did not end, or cannot succeed as things are.", []string{"namespace", "reason"}},
		{slots, Gauge, "Machines in flight, by the state of their slot.", []string{"namespace", "state"}},
		{oldestSlot, Gauge, "When the slot was reserved that is held longest; absent without slots.", []string{"namespace"}},
		{stopped, Gauge, "1 while the stop switch of the namespace halts every grant.", []string{"namespace"}},
		{rolloutProgress, Gauge, "Part of the pool's machines that are up to date; absent for a pool without machines.", pool},
		{rolloutHalted, Gauge, "1 while condition Progressing of the pool is False: somebody has to see to it.", pool},
		{rolloutPaused, Gauge, "1 while the pool is paused by its spec.", pool},
		{budgetUnavailable, Gauge, "Machines that do not serve, of those that the budget counts.", budget},
		{budgetAllowed, Gauge, "Machines that may be unavailable under the budget.", budget},
		{operations, Counter, "Operations that have ended since this coordinator leads.", []string{"type", "state"}},
		{operationDuration, Histogram, "Duration of the phases of operations that have ended since this coordinator leads.", []string{"type", "phase"}},
		{collectorSucceeded, Gauge, "1 when all other metrics of Refit could be counted.", nil},
	}
}
