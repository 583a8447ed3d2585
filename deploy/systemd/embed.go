// Package systemd holds the units of Refit, for programs that put one onto a host.
package systemd

import _ "embed"

// ResumeUnit is refit-resume.service, for an executor in /usr/bin.
//
//go:embed refit-resume.service
var ResumeUnit string
