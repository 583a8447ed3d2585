// Command refit-agent keeps this host at the versions of its Machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/refit-dev/refit/pkg/usage"
)

const exitFault = 1

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "refit-agent:", err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	if usage.Is(err) {
		return usage.ExitCode
	}
	return exitFault
}
