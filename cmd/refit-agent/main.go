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
	"github.com/refit-dev/refit/pkg/usage"
)

// The exit codes, those of kubectl refit: a refusal is an answer, not a fault. Bad input
// and a mistake on the command line end with usage.ExitCode.
const (
	exitFault   = 1
	exitRefused = 3
)

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
	switch {
	case errors.As(err, &r):
		return exitRefused
	case usage.Is(err), manifest.Invalid(err):
		return usage.ExitCode
	}
	return exitFault
}
