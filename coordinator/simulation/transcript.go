package simulation

import (
	"time"
)

// The actions of a transcript.
const (
	ActionAssign   = "Assign"   // the coordinator names a machine's next hop
	ActionPlan     = "Plan"     // the host has planned and staged it; Reason is its disruption
	ActionBlocked  = "Blocked"  // the host cannot plan it
	ActionWait     = "Wait"     // what holds a machine back has changed
	ActionCheck    = "Check"    // a check is taken to pass, since nobody says how Prometheus answers
	ActionReserve  = "Reserve"  // a slot in the ledger
	ActionCordon   = "Cordon"   // the node leaves scheduling
	ActionDrain    = "Drain"    // the drain begins
	ActionEvict    = "Evict"    // one pod
	ActionDrained  = "Drained"  // the pods have left
	ActionGrant    = "Grant"    // the host may go
	ActionAccept   = "Accept"   // the host goes: nothing takes that back
	ActionApply    = "Apply"    // the work on the host begins
	ActionVerify   = "Verify"   // the work has ended
	ActionUncordon = "Uncordon" // the node is given back
	ActionSoak     = "Soak"     // it has to stay well for a while
	ActionRelease  = "Release"  // the slot is free
	ActionFail     = "Fail"     // Reason says of what
	ActionTakeBack = "TakeBack" // a slot that was not accepted
	ActionPause    = "Pause"    // a person's, or the rollout's own
	ActionResume   = "Resume"
	ActionRollout  = "Rollout" // a MachineDeployment's condition Progressing
	ActionEvent    = "Event"   // of the scenario
	ActionGone     = "Gone"    // the Machine is no more
	ActionDone     = "Done"    // what runs is what spec wants
	ActionSummary  = "Summary"
)

// Entry is one line of a transcript.
type Entry struct {
	Time    time.Time `json:"time"`
	Action  string    `json:"action"`
	Machine string    `json:"machine"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

// Outcome is how a simulation ended.
type Outcome string

// The outcomes.
const (
	// Completed: every machine in service is what its spec wants.
	Completed Outcome = "Completed"
	// StoodStill: nothing would ever happen again, and not all machines have arrived.
	StoodStill Outcome = "StoodStill"
	// TimedOut: the end of the simulated time came first.
	TimedOut Outcome = "TimedOut"
)

// Summary is what a simulation comes to.
type Summary struct {
	Outcome Outcome `json:"outcome"`
	// Makespan is from the start to the last thing that happened.
	Makespan time.Duration `json:"-"`
	Seconds  int64         `json:"makespanSeconds"`
	// Machines of the scenario, and how many are in which state at the end.
	Machines int            `json:"machines"`
	States   map[string]int `json:"states"`
	// Drains that began, and the most of one machine.
	Drains      int    `json:"drains"`
	MostDrains  int    `json:"mostDrains"`
	MostDrained string `json:"mostDrained,omitempty"`
	Evictions   int    `json:"evictions"`
	// MostUnavailable machines at one time.
	MostUnavailable int `json:"mostUnavailable"`
	// Waiting are the machines that have not arrived, and what each waits for; where all have,
	// the MachineDeployments whose rollout is in trouble by itself.
	Waiting []Waiting `json:"waiting,omitempty"`
}

// Waiting is a machine that has not arrived, or a MachineDeployment.
type Waiting struct {
	Machine           string `json:"machine,omitempty"`
	MachineDeployment string `json:"machineDeployment,omitempty"`
	State             string `json:"state"`
	Reason            string `json:"reason"`
	Message           string `json:"message"`
}

// Name is the machine's, or that of the MachineDeployment with its kind.
func (w *Waiting) Name() string {
	if w.MachineDeployment != "" {
		return "MachineDeployment/" + w.MachineDeployment
	}
	return w.Machine
}
