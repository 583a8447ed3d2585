package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/cli/watch"
	"github.com/refit-dev/refit/cli/watch/feed"
	"github.com/refit-dev/refit/pkg/usage"
)

// redraw is the least time between two screens, and tick how often the clock on it moves.
const redraw, tick = 200 * time.Millisecond, time.Second

// haltedError is a rollout that waits for a person.
type haltedError struct{ message string }

func (h haltedError) Error() string { return h.message }

type watchOptions struct {
	*command
	untilDone bool
	events    int
	output    string
}

func newWatch(c *command) *cobra.Command {
	o := &watchOptions{command: c}
	cmd := &cobra.Command{
		Use:   "watch [POOL]...",
		Short: "Follow rollouts live: progress, machines, blocked drains, events",
		Long: `A full-screen view of the namespace, or of the pools that are named: how far each rollout is
and how long it has left, going by what operations have taken before; the machines, those that
have failed first; the drains that are blocked, and why; and what happens. ? shows the keys:
among them w, why the selected machine waits, and p, r and t to pause, resume and retry, which ask.

Where the output is no terminal, a line is written for each change instead; -o json makes each
a line of JSON. Everything comes from watches: nothing is asked again and again.

Exit codes: 0 left, or with --until-done all pools are up to date; 1 a fault, or a pool that has
paused itself meanwhile; 2 bad input; 3 Refit is not installed.`,
		Example:           "  kubectl refit watch\n  kubectl refit watch workers --until-done\n  kubectl refit watch -o json | jq -c 'select(.kind == \"Machine\")'",
		ValidArgsFunction: c.completes(verbs.Pool),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.untilDone, "until-done", false, "End when all pools are up to date, or one has paused itself")
	cmd.Flags().IntVar(&o.events, "events", 200, "How many lines of the log are kept")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json: a line of JSON for each change, instead of the view")
	return cmd
}

func (o *watchOptions) run(ctx context.Context, names []string) error {
	if err := usage.OneOf("output", o.output, "", "json"); err != nil {
		return err
	}
	if o.events < 1 {
		return usage.Errorf("--events is 1 or more")
	}
	_, n, err := o.readNamespace(ctx)
	if err != nil {
		return err
	}
	pools, err := n.Select(names, poolsFirst)
	if err != nil {
		return err
	}
	if o.untilDone && len(n.Pools) == 0 {
		return usage.Errorf("there is no MachineDeployment in namespace %s, so nothing to wait for (-n names another namespace)", n.Name)
	}
	only := make([]string, 0, len(pools))
	for _, p := range pools {
		only = append(only, p.GetName())
	}
	cl, err := o.watching()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changes, err := feed.Start(ctx, cl, o.namespace())
	if err != nil {
		return err
	}
	if o.output == "" && o.onTerminal() {
		return o.view(ctx, changes, only)
	}
	if o.output == "" {
		fmt.Fprintln(o.err, "The output is no terminal: a line for each change, until Ctrl-C or --until-done.")
	}
	return o.lines(ctx, changes, only)
}

func (c *command) watching() (client.WithWatch, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	cl, err := client.NewWithWatch(config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return cl, nil
}

// onTerminal says that there is somebody at both ends.
func (s streams) onTerminal() bool {
	in, isIn := s.in.(*os.File)
	out, isOut := s.out.(*os.File)
	return isIn && isOut && term.IsTerminal(in) && term.IsTerminal(out)
}

// lines is the view of who is no terminal.
func (o *watchOptions) lines(ctx context.Context, changes *feed.Feed, only []string) error {
	w := watch.NewLines(o.out, o.output == "json", time.Now(), only...)
	trouble := ""
	for {
		b, on := changes.Next(ctx)
		if !on {
			return nil
		}
		if b.Trouble != trouble && b.Trouble != "" {
			fmt.Fprintln(o.err, b.Trouble)
		}
		trouble = b.Trouble
		if err := w.Take(b); err != nil {
			return fmt.Errorf("writing a change: %w", err)
		}
		if o.untilDone && b.Synced {
			if end := w.Outcome(b.Now); end.Over {
				return o.ended(end)
			}
		}
	}
}

func (o *watchOptions) ended(end watch.Outcome) error {
	if end.Halted {
		return haltedError{end.Message}
	}
	fmt.Fprintln(o.err, end.Message)
	return nil
}

// view is the full screen.
func (o *watchOptions) view(ctx context.Context, changes *feed.Feed, only []string) error {
	model := watch.New(watch.Options{Namespace: o.namespace(), Pools: only, Events: o.events, UntilDone: o.untilDone, Deeds: deeds{ctx, o.command}})
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(o.in), tea.WithOutput(o.out), tea.WithoutSignalHandler(), tea.WithFPS(5))
	go bring(ctx, changes, program.Send)
	end, err := program.Run()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("drawing the view: %w", err)
	}
	if m, is := end.(watch.Model); is && m.Outcome().Over {
		return o.ended(m.Outcome())
	}
	return nil
}

// bring hands changes on, so many at a time that no more screens are drawn than a slow line carries.
func bring(ctx context.Context, changes *feed.Feed, send func(tea.Msg)) {
	go func() {
		clock := time.NewTicker(tick)
		defer clock.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-clock.C:
				send(watch.Clock(now))
			}
		}
	}()
	for {
		b, on := changes.Next(ctx)
		if !on {
			return
		}
		send(b)
		select {
		case <-ctx.Done():
			return
		case <-time.After(redraw):
		}
	}
}

// deeds carries out what keys ask for, as the commands of the same names do.
type deeds struct {
	ctx context.Context //nolint:containedctx // of the view, whose keys have none
	c   *command
}

// Do implements watch.Deeds.
func (d deeds) Do(verb watch.Verb, target string) tea.Cmd {
	return func() tea.Msg {
		text, err := d.run(string(verb), target)
		return watch.Done{Text: text, Err: err}
	}
}

// Why implements watch.Deeds.
func (d deeds) Why(machine string) tea.Cmd {
	return func() tea.Msg {
		text, err := d.run("why", machine)
		return watch.Explained{Machine: machine, Text: text, Err: err}
	}
}

// run is another command, with the connection and the namespace of this one.
func (d deeds) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(d.ctx, 30*time.Second)
	defer cancel()
	var out, notes bytes.Buffer
	c := &command{streams: streams{out: &out, err: &notes}, flags: d.c.flags, workload: d.c.workload}
	for _, cmd := range []*cobra.Command{newPause(c), newResume(c), newRetry(c), newWhy(c)} {
		if cmd.Name() != args[0] {
			continue
		}
		cmd.SetContext(ctx)
		if err := cmd.RunE(cmd, slices.Clone(args[1:])); err != nil {
			return "", err //nolint:wrapcheck // as the command itself says it
		}
	}
	said := []string{strings.TrimRight(out.String(), "\n")}
	if text := strings.TrimSpace(notes.String()); text != "" {
		said = append(said, text)
	}
	return strings.Join(said, "; "), nil
}
