// Package controllers has no code, only tests: whole rollouts of the real controllers on
// in-memory API servers, with a clock of their own. What is written where and when is
// kept as a transcript under testdata, to be read as a diff (go test -update writes it
// anew), and each single write is made to fail, before its effect and after it.
package controllers
