package docs

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Check says why the program does not take the command line; it runs nothing. root makes the
// program's command anew, since flags remember.
func Check(root func() *cobra.Command, c Command) error {
	r := root()
	r.InitDefaultHelpCmd()
	r.InitDefaultCompletionCmd(c.Words...)
	cmd, rest, err := r.Find(c.Words)
	if err != nil {
		return fmt.Errorf("%s: %v: %w", c.Where, c.Words, err)
	}
	if cmd == r && rest[0][0] != '-' {
		return fmt.Errorf("%s: %v: there is no such command", c.Where, c.Words)
	}
	cmd.InitDefaultHelpFlag()
	if c.Mentioned {
		rest = withoutBareFlag(cmd, rest)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return fmt.Errorf("%s: %v: %w", c.Where, c.Words, err)
	}
	if c.Mentioned {
		return nil
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return fmt.Errorf("%s: %v: %w", c.Where, c.Words, err)
	}
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return fmt.Errorf("%s: %v: %w", c.Where, c.Words, err)
	}
	return nil
}

// withoutBareFlag leaves out a flag at the end that there is: a sentence about it need not give it a value.
func withoutBareFlag(cmd *cobra.Command, words []string) []string {
	if len(words) == 0 || !strings.HasPrefix(words[len(words)-1], "-") {
		return words
	}
	last := words[len(words)-1]
	name := strings.TrimLeft(last, "-")
	flags := cmd.Flags()
	flags.AddFlagSet(cmd.InheritedFlags())
	if flags.Lookup(name) != nil && strings.HasPrefix(last, "--") || len(name) == 1 && flags.ShorthandLookup(name) != nil {
		return words[:len(words)-1]
	}
	return words
}
