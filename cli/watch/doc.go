// Package watch is the live view of a namespace:
//
//	Change (one object, from a watch) -> Fleet (what is known) -> Model (what is looked at) -> Frame (the screen)
//
// All of it is pure: it reads no clock, no cluster and no terminal. Who runs it brings changes and time in, and
// carries out the deeds that keys ask for. Without a terminal Lines has a line for each change instead.
package watch
