package upgrade

// Blocked says that nothing may be done, why, and what would help. It is never a fault of the host.
type Blocked struct {
	Reason  string // CamelCase, for programs
	Message string // for people: what, where, what to do
	// Terminal refusals wait for another spec; others may pass by themselves.
	Terminal bool
}

// Error implements error.
func (b *Blocked) Error() string { return b.Reason + ": " + b.Message }
