// Package journal is the record of one operation on a host: what was accepted, what
// was begun, what was done, how it ended. It is a pure file format; the executor
// writes it, the agent reads it.
//
//	<state>/journal/<id>.json   {"formatVersion":1,"checksum":"sha256:…","record":{…}}
//	<state>/open/<id>           exists while the operation is not finished
//
// Every write is: temporary file, fsync, rename, fsync of the directory. A crash
// leaves the record before the write or the one after it, never a half of either; a
// record that does not match its checksum was damaged by something else, and
// nothing is ever run from it.
//
// The marker under open is made before the first record and removed after the last
// one: a boot that finds the directory empty has nothing to resume. A marker without
// a record, or with a finished one, is the trace of a crash between the two and is
// swept away.
package journal
