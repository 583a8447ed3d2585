// Command refit-agent keeps this host at the versions of its Machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// The exit codes, those of kubectl refit: a refusal is an answer, not a fault.
const (
	exitFault   = 1
	exitUsage   = 2
	exitRefused = 3
)

// usage is a mistake on the command line.
type usage struct{ error }

// refused says that the host would not do it.
type refused struct{ *upgrade.Blocked }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "refit-agent:", err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	var r refused
	var u usage
	switch {
	case errors.As(err, &r):
		return exitRefused
	case errors.As(err, &u), manifest.Invalid(err):
		return exitUsage
	}
	return exitFault
}
