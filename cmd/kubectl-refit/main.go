// Command kubectl-refit is the operator's view of Refit, as "kubectl refit".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/refit-dev/refit/pkg/usage"
)

// The exit codes: a refusal is an answer, not a fault; a mistake on the command line ends with usage.ExitCode.
const (
	exitFault   = 1
	exitRefused = 3
)

// refused says that nothing was done, and what would help.
type refused struct{ message string }

func (r refused) Error() string { return r.message }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	var r refused
	switch {
	case errors.As(err, &r):
		return exitRefused
	case usage.Is(err):
		return usage.ExitCode
	}
	return exitFault
}
