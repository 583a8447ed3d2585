package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/cli/verbs"
)

// completes offers the names of what a verb can be about, of the first kind as they are and
// of the others with their prefix. A cluster that does not answer offers nothing.
func (c *command) completes(bare verbs.Kind, others ...verbs.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, n, err := c.readNamespace(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := n.Names(bare)
		for _, kind := range others {
			for _, name := range n.Names(kind) {
				names = append(names, strings.ToLower(string(kind))+"/"+name)
			}
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.Contains(args, name) || !strings.HasPrefix(name, begun)
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// atLeastOne refuses a verb without a name, and says what it takes.
func atLeastOne(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return errNoName(cmd)
}

func exactlyOne(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return errNoName(cmd)
}

func errNoName(cmd *cobra.Command) error {
	_, takes, _ := strings.Cut(cmd.Use, " ")
	return fmt.Errorf("%s takes %s", cmd.CommandPath(), takes)
}

// completesOne is completes for a verb that takes one name.
func (c *command) completesOne(bare verbs.Kind, others ...verbs.Kind) cobra.CompletionFunc {
	names := c.completes(bare, others...)
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, args, begun)
	}
}
