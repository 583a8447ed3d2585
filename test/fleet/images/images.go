// Package images carries the sources of the two programs a fleet runs in images of its own: pause, which holds the
// namespaces of a pod, and app, the workload of the scenarios.
package images

import "embed"

// Sources holds one directory per program.
//
//go:embed app/main.go pause/main.go
var Sources embed.FS
