// Package simulation runs whole rollouts on paper. The coordinator's own controllers work
// on objects in memory, by a clock that jumps from one event to the next; the hosts, the
// drains and the cluster are played, and take as long as the scenario says.
//
//	Scenario ─> world (objects) <─ controllers: machinedeployment, rollout, machine
//	              ^    │                 order, gates, ledger, planner: the real ones
//	  events ─────┘    └─> hosts, drains: stage, evict, apply, verify; by the clock
//	                        │
//	                        └─> transcript: who does what, when and why
//
// There is one goroutine, and the same scenario always gives the same transcript.
package simulation
