// Package packagefile keeps the package files of a host, whatever its package manager:
// those that a plan installs, those that a rollback would install, and what
// repositories were seen to offer. A file counts by its digest alone.
package packagefile
