// Package status words the state of a Machine: the catalogue of reasons, one
// constructor per condition and state, and the phase derived from them. It is pure;
// coordinator and CLI share it so that both say the same.
package status
