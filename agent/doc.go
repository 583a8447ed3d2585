// Package agent keeps one host at its Machine: it watches, probes, plans, stages,
// accepts grants, hands them to the executor and reports. One goroutine owns all
// state; whatever takes time runs beside it and comes back as a result.
//
//	Machine (watch) ──┐
//	restarts of units ┤
//	journal, dpkg ────┤                ┌─ probe   what runs here          ─┐
//	results of jobs ──┼─> advance() ──>├─ plan    facts … stage … frozen   ├─ one at a time
//	timers ───────────┘                ├─ follow  start and watch the unit ─┘
//	                                   └─ write   report, or acceptance    ── one at a time
//
// advance looks at everything anew each time and starts what is missing, so it does
// not matter which event woke it, nor what an earlier agent had begun:
//
//	readDisk ─> probe ─> plan ─> decide on the grant ─> follow the operation ─> report
//
// Nothing is polled. An idle agent has one open watch, one inotify handle, one subscription to the bus and a timer
// of an hour or so.
package agent
