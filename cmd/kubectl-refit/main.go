// Command kubectl-refit is the operator's view of Refit, as "kubectl refit".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/refit-dev/refit/pkg/outage"
	"github.com/refit-dev/refit/pkg/usage"
)

// refused says that nothing was done, and what would help.
type refused struct{ message string }

func (r refused) Error() string { return r.message }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	if cmd, err := root.ExecuteContextC(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %s\n", explain(cmd.Name(), err))
		os.Exit(exitCode(err))
	}
}

// whileAway is what a command has done, or can do, while the API server is away.
var whileAway = map[string]string{
	"plan":      "; kubectl refit plan -f FILES --facts FACTS asks no cluster",
	"adopt":     "; what was created before stays: run it again",
	"drain":     "; what was evicted before has left, and a node that is still cordoned is given back with kubectl uncordon",
	"install":   "; what was applied before stays: run it again",
	"uninstall": "; what was taken away before is gone: run it again",
}

// explain words an error. Of an API server that is away it says what that means: the
// chain of calls in which it was found out helps nobody.
func explain(command string, err error) string {
	text, away := outage.Told(err)
	if !away {
		return err.Error()
	}
	return text + ". See that it runs, and that --kubeconfig, --context and --server name the right cluster" + whileAway[command] +
		". No host depends on it: what hosts have accepted goes on to its end, and nothing new is granted until it is back"
}

func exitCode(err error) int {
	var r refused
	var e elsewhereError
	switch {
	case errors.As(err, &e):
		return usage.ExitElsewhere
	case errors.As(err, &r):
		return usage.ExitRefused
	case usage.Is(err):
		return usage.ExitCode
	}
	return usage.ExitFault
}
