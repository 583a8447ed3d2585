// The coordinator decides who may go next, and when.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/refit-dev/refit/coordinator/setup"
	"github.com/refit-dev/refit/pkg/logging"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/pkg/version"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "refit-coordinator:", err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	if usage.Is(err) {
		return usage.ExitCode
	}
	return 1
}

func run(args []string, out io.Writer) error {
	var o setup.Options
	show, err := parse(args, &o, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return usage.Errorf("%w (see --help)", err)
	}
	if show {
		fmt.Fprintln(out, version.Version)
		return nil
	}
	log, err := logging.New(o.LogLevel)
	if err != nil {
		return usage.Errorf("reading --log-level: %w", err)
	}
	return setup.Run(ctrl.SetupSignalHandler(), o, log)
}

// parse reads the flags; help that was asked for is an answer, and goes where answers go.
func parse(args []string, o *setup.Options, out io.Writer) (show bool, err error) {
	fs := flag.NewFlagSet("refit-coordinator", flag.ContinueOnError)
	o.Bind(fs)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "Usage: refit-coordinator [flags], or refit-coordinator version\n")
		fs.PrintDefaults()
	}
	fs.BoolVar(&show, "version", false, "print the version and end")
	fs.SetOutput(io.Discard)
	err = fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(out)
		fs.Usage()
		return false, flag.ErrHelp
	case err != nil:
		return false, fmt.Errorf("reading flags: %w", err)
	case show, fs.NArg() == 1 && fs.Arg(0) == "version": // as a word too, as in the other programs
		return true, nil
	case fs.NArg() > 0:
		return false, fmt.Errorf("unexpected argument %q: all options are flags", fs.Arg(0))
	}
	return false, o.Validate()
}
