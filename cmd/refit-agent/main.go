// Command refit-agent keeps this host at the versions of its Machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

// refused says that the host would not do it. Told: the output has it among its remarks.
type refused struct {
	*upgrade.Blocked
	told bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		report(os.Stderr, err)
		os.Exit(exitCode(err))
	}
}

// report says what went wrong, unless the output has said so already.
func report(w io.Writer, err error) {
	var r refused
	var e ended
	if errors.As(err, &r) && r.told || errors.As(err, &e) && err.Error() == "" {
		return
	}
	fmt.Fprintln(w, "refit-agent:", redact.URIs(err.Error()))
}

func exitCode(err error) int {
	var r refused
	var e ended
	switch {
	case errors.As(err, &e):
		if e.passing {
			return usage.ExitWait
		}
		return e.state.Code()
	case errors.As(err, &r) && !r.Terminal:
		return usage.ExitWait
	case errors.As(err, &r):
		return usage.ExitRefused
	case usage.Is(err), manifest.Invalid(err):
		return usage.ExitCode
	}
	return usage.ExitFault
}
