// Command refit-executor probes this host and carries accepted plans out on it. It runs
// as root, started by systemd, only while there is work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/usage"
)

// Exit codes. How an operation went is in its journal; the code is for people and tests.
const (
	exitFault   = 1 // no outcome: it may pass, or the journal is open; a mistake on the command line is usage.ExitCode
	exitRefused = 3 // refused, or an operation that failed
)

// refused is an outcome that is not success.
var errRefused = errors.New("refused or failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "refit-executor:", redact.URIs(err.Error()))
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	switch {
	case errors.Is(err, errRefused):
		return exitRefused
	case usage.Is(err):
		return usage.ExitCode
	}
	return exitFault
}
