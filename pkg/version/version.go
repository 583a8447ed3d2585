// Package version says which Refit this is.
package version

// Version is set by the linker: a release, or what git describes.
var Version = "dev"
