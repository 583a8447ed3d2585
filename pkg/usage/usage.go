// Package usage tells a mistake on a command line from a fault of the program or the
// host: who runs a command in a script has to know whether to run it again.
package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of the programs. Only refit-agent apply has ExitRolledBack and
// ExitNotRolledBack: it is the one command whose answer is how an operation went.
const (
	// ExitFault: something broke, or nobody knows how it went; it may be worth another try.
	ExitFault = 1
	// ExitCode of a command line, or a file, that cannot be meant.
	ExitCode = 2
	// ExitRefused: an answer, not a fault; nothing was done, and the message says what would help.
	ExitRefused = 3
	// ExitRolledBack: the operation failed, and the host runs what it ran before.
	ExitRolledBack = 4
	// ExitNotRolledBack: the operation failed and something of it stays, or it has stopped before its end.
	ExitNotRolledBack = 5
	// ExitWait: refused for now by what may pass without anybody's doing, such as a repository that is away; another try is worth it.
	ExitWait = 6
	// ExitElsewhere: the answer is not to be had from here; the message says what to run where.
	ExitElsewhere = 7
)

// Error is a mistake on the command line: nothing was begun.
type Error struct{ cause error }

// Error implements error.
func (e Error) Error() string { return e.cause.Error() }

// Unwrap returns what was found to be wrong.
func (e Error) Unwrap() error { return e.cause }

// Errorf words a mistake.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Is says whether an error is a mistake on the command line.
func Is(err error) bool {
	var mistake Error
	return errors.As(err, &mistake)
}

// OneOf says that a flag has one of the values it may have; an empty one is a flag that was not given.
func OneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(allowed), func(v string) bool { return v == "" })
	return Errorf("--%s %q is not known: it is %s", flag, value, strings.Join(named, " or "))
}

// NoArgs refuses arguments of a command that takes none, for cobra.Command.Args.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args)
	}
	return nil
}

// Strict makes everything that cobra finds wrong with a command line an Error that names
// the command's help, in a command and all below it. A command that only has others
// answers with its help, and does not take any word for one of them.
func Strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return mistake(cmd, err) })
	if !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		cmd.Args = cobra.NoArgs
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return mistake(cmd, check(cmd, args)) }
	}
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := mistake(cmd, cmd.ValidateRequiredFlags()); err != nil || before == nil {
			return err
		}
		return before(cmd, args)
	}
	for _, sub := range cmd.Commands() {
		Strict(sub)
	}
}

func mistake(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return Errorf("%w (see %s --help)", err, cmd.CommandPath())
}
