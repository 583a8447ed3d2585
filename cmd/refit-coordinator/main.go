// The coordinator decides who may go next, and when.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/refit-dev/refit/coordinator/setup"
	"github.com/refit-dev/refit/pkg/logging"
	"github.com/refit-dev/refit/pkg/version"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "refit-coordinator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var o setup.Options
	fs := flag.NewFlagSet("refit-coordinator", flag.ExitOnError)
	o.Bind(fs)
	show := fs.Bool("version", false, "print the version and end")
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("reading flags: %w", err)
	}
	if *show {
		fmt.Println(version.Version)
		return nil
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: all options are flags, see --help", fs.Arg(0))
	}
	if err := o.Validate(); err != nil {
		return err
	}
	log, err := logging.New(o.LogLevel)
	if err != nil {
		return err
	}
	return setup.Run(ctrl.SetupSignalHandler(), o, log)
}
