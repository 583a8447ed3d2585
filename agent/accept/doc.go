// Package accept holds the rules for a grant: when it is accepted, and what an agent
// that was killed in between does when it is back. The work runs at most once.
//
//	 1 intent on disk        <state>/accepting/<grant>.json
//	 2 acceptance in the API status.accepted, conditional on the resourceVersion that carried the grant
//	 3 operation on disk     <state>/operations/<grant>.json, the intent is removed
//	 4 unit started          refit-op-<grant>.service; the executor's first act is its journal
//	 5 end reported          status.lastOperation
//
//	crash after | the API says accepted | on disk           | the next agent
//	1           | no                    | intent            | decides anew; the intent is overwritten
//	2           | yes                   | intent, same boot | goes on at 3: nothing can have begun
//	2           | yes                   | intent, other boot| Lost: a restored disk may hold an old intent
//	3           | yes                   | operation         | starts the unit
//	4           | yes                   | journal, open     | follows it; starts the unit if none runs
//	4           | yes                   | journal, ended    | reports the outcome
//	any         | yes                   | nothing           | Lost: observes, reports, never runs
//
// An acceptance whose answer was lost on the way looks like a crash after 1 or 2: the
// Machine is read again, and what it says decides.
package accept
