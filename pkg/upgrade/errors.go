package upgrade

// Blocked says that nothing may be done, why, and what would help. It is never a fault of the host.
type Blocked struct {
	Reason  string `json:"reason"`  // CamelCase, for programs
	Message string `json:"message"` // for people: what, where, what to do
	// Terminal refusals wait for another spec; others may pass by themselves.
	Terminal bool `json:"terminal,omitempty"`
}

// Error implements error.
func (b *Blocked) Error() string { return b.Reason + ": " + b.Message }

// FailureFile is what the executor leaves where a result was asked for and there is
// none, so that the reason reaches the Machine and not only the host's log.
type FailureFile struct {
	Failure *Blocked `json:"failure,omitempty"`
}
