// Package apply carries out a Machine on a host without a cluster: the same plan, stage,
// acceptance and executor as the agent's, under a grant that the host gives itself.
//
//	find     an operation that has no outcome: followed when it is of the same file, refused when it is not
//	check    what nobody but the person at the host can answer for: drain, API servers, a running agent
//	accept   stage, freeze, grant, intent, operation: the agent's own order, and one lock around it
//	follow   start the executor unless it runs, show its journal until that has an outcome
//
// What was started goes on without whoever follows it.
package apply
