package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/setup"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

// planningHost is what apply asks of the host before it grants itself anything.
type planningHost interface {
	Plan(ctx context.Context, document setup.Document, stated setup.Statement) (setup.Draft, error)
	Situation(ctx context.Context, draft setup.Draft, drained bool) (apply.Situation, error)
}

// applying is one run of the command.
type applying struct {
	file, output string
	yes, drained bool
	stated       setup.Statement
	bound        bool // a file binds the host to a cluster

	in      io.Reader
	screen  io.Writer // for people: the standard output, or the error output beside -o json and -o yaml
	result  applyResult
	host    planningHost
	applier *apply.Applier
}

// applyResult is what apply prints with -o json and -o yaml.
type applyResult struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"` // ApplyResult
	State      apply.State `json:"state"`
	// Plan that was to be carried out; unset where an operation was under way.
	Plan *preview.MachinePlan `json:"plan,omitempty"`
	// Refusal says why nothing was begun.
	Refusal *upgrade.Blocked `json:"refusal,omitempty"`
	// Operation that was carried out or followed.
	Operation *v1alpha1.Operation `json:"operation,omitempty"`
	EndTime   *time.Time          `json:"endTime,omitempty"`
	NotUndone []string            `json:"notUndone,omitempty"`
}

// ended is the way of a command that has begun an operation, or that must not, to its exit code.
type ended struct {
	state   apply.State
	message string // "" where the output has it
	passing bool   // Refused by what may pass by itself
}

func (e ended) Error() string { return e.message }

// opener finds the host; tests have another.
type opener func(cmd *cobra.Command) (planningHost, *apply.Applier, error)

func openHost(cmd *cobra.Command) (planningHost, *apply.Applier, error) {
	host, err := newHost(cmd)
	if err != nil {
		return nil, nil, err
	}
	applier, err := host.Applier(cmd.Context())
	return host, applier, err
}

func applyCommand(open opener) *cobra.Command {
	a := &applying{}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make this host what FILE asks for, without a cluster",
		Long: `Make this host what FILE, a Machine, asks for, without a cluster.

The plan is shown first and confirmed, then staged and handed to the executor. The operation goes on without this command:
Ctrl-C ends only the view, and applying the same file again follows what is under way.

Exit codes: 0 done, or nothing to do. 1 a fault, or the view was ended before the operation. 2 bad input. 3 refused, nothing
was begun: somebody has to change what the message names. 4 failed, and the host runs what it ran before. 5 failed and not entirely
rolled back, or stopped before its end. 6 refused for now, nothing was begun: it may pass by itself, try again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := usage.OneOf("output", a.output, "table", "json", "yaml"); err != nil {
				return err
			}
			if err := checkStatement(a.stated); err != nil {
				return err
			}
			if err := mayAsk(cmd.InOrStdin(), a.file); err != nil && !a.yes {
				return err
			}
			return a.run(cmd, open)
		},
	}
	cmd.Flags().StringVarP(&a.file, "filename", "f", "", "file with one Machine; - is standard input")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&a.drained, "drained", false, "the host's pods have been evicted: without a cluster nobody here can do it, or see it")
	cmd.Flags().StringVarP(&a.output, "output", "o", "table", "table, json or yaml; with the latter two progress goes to the error output")
	addStatement(cmd, &a.stated)
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that does not exist
	return cmd
}

func (a *applying) run(cmd *cobra.Command, open opener) error {
	a.in, a.screen = cmd.InOrStdin(), cmd.OutOrStdout()
	if a.output != "table" {
		a.screen = cmd.ErrOrStderr()
	}
	document, err := setup.ReadMachine(a.file, a.in)
	if err != nil {
		return err
	}
	if a.host, a.applier, err = open(cmd); err != nil {
		return err
	}
	config, err := cmd.Flags().GetString("config")
	if err != nil {
		return fmt.Errorf("reading flags: %w", err)
	}
	a.bound = setup.Bound(config)
	a.result = applyResult{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ApplyResult"}
	err = refusedBy(a.apply(cmd.Context(), document))
	var end ended
	if a.output != "table" && (err == nil || errors.As(err, &end)) {
		if end.state != "" {
			a.result.State = end.state
		}
		return errors.Join(encode(cmd.OutOrStdout(), a.output, a.result), err)
	}
	return err
}

// refusedBy gives a refusal its exit code and its words.
func refusedBy(err error) error {
	var blocked *upgrade.Blocked
	var end ended
	if errors.As(err, &end) || !errors.As(err, &blocked) {
		return err
	}
	return ended{apply.Refused, blocked.Reason + ": " + blocked.Message, !blocked.Terminal}
}

// apply reads as the order of things: nothing is begun before the last two.
func (a *applying) apply(ctx context.Context, document setup.Document) error {
	if moved, err := a.applier.Claim(); err != nil {
		return err
	} else if moved != "" {
		a.say("The state on this host was of another machine and is not followed; it is in %s.", moved)
	}
	id, err := document.AssignmentID()
	if err != nil {
		return err
	}
	underWay, err := a.applier.UnderWay(id)
	if err != nil {
		return a.refused(err)
	}
	if underWay != nil {
		a.say("Operation %s of this file has no outcome yet: following it.\n", underWay.ID)
		return a.follow(ctx, *underWay)
	}
	op, err := a.begin(ctx, document, id)
	if op == nil && !declined(err) {
		if underWay = a.begunMeanwhile(id); underWay != nil {
			a.say("Operation %s of this file was begun by another command meanwhile: following it.\n", underWay.ID)
			return a.follow(ctx, *underWay)
		}
	}
	if op == nil {
		return err
	}
	a.say("Operation %s begins. It goes on without this command; to follow it again, apply the same file.\n", op.ID)
	return a.follow(ctx, *op)
}

// begin has the host accept an operation; nil where there is nothing to do, or an error.
func (a *applying) begin(ctx context.Context, document setup.Document, id string) (*upgrade.Operation, error) {
	draft, err := a.plan(ctx, document)
	if err != nil {
		return nil, err
	}
	if len(draft.Plan.Steps) == 0 {
		a.result.State = apply.UpToDate
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	if err := a.permitted(ctx, draft); err != nil {
		return nil, a.refused(err)
	}
	a.notices(draft, id)
	if !a.yes && !confirmed(a.in, a.screen, "\nDo this now?") {
		return nil, a.refused(&upgrade.Blocked{Reason: apply.ReasonNotConfirmed, Message: "nothing was changed", Terminal: true})
	}
	a.say("\nStaging: packages and images are fetched and checked, which disturbs nothing.")
	op, err := a.applier.Accept(ctx, draft.Machine, draft.Plan)
	if err != nil {
		return nil, a.refused(err)
	}
	return &op, nil
}

func declined(err error) bool {
	blocked := upgrade.IsBlocked(err)
	return blocked != nil && blocked.Reason == apply.ReasonNotConfirmed
}

// begunMeanwhile is an operation of the same file that another command has begun since this
// one looked: whatever was planned beside it counts for nothing.
func (a *applying) begunMeanwhile(id string) *upgrade.Operation {
	underWay, err := a.applier.UnderWay(id)
	if err != nil || underWay == nil {
		return nil
	}
	a.result.State, a.result.Plan, a.result.Refusal = "", nil, nil
	return underWay
}

// plan shows what is to be done.
func (a *applying) plan(ctx context.Context, document setup.Document) (setup.Draft, error) {
	draft, err := a.host.Plan(ctx, document, a.stated)
	if err != nil {
		return draft, err
	}
	a.result.Plan = &draft.List.Items[0]
	if err := printPlans(a.screen, "table", draft.List); err != nil {
		return draft, err
	}
	if blocked := a.result.Plan.Refusal; blocked != nil {
		a.result.Refusal = blocked
		return draft, ended{state: apply.Refused, passing: !blocked.Terminal} // the plan has said why
	}
	return draft, nil
}

func (a *applying) permitted(ctx context.Context, draft setup.Draft) error {
	situation, err := a.host.Situation(ctx, draft, a.drained)
	if err != nil {
		return err
	}
	if blocked := apply.Check(situation); blocked != nil {
		return blocked
	}
	return a.applier.Permit(draft.Plan)
}

// notices are what a person should know before saying yes.
func (a *applying) notices(draft setup.Draft, assignmentID string) {
	if last, ok := a.applier.Last(assignmentID); ok && last.State != apply.Successful {
		a.say("\nThis file was applied before: operation %s ended as %s, %s: %s", last.Operation.ID, last.State, last.Operation.Reason, last.Operation.Description)
	}
	if a.bound {
		a.say("\nThis host is bound to a cluster whose agent does not run now. When refit-agent.service is started, the host goes back to what its Machine there says.")
	}
	if a.drained {
		a.say("\nYou say that the host is drained: pods that are left on it may be ended.")
	}
	if slices.ContainsFunc(draft.Plan.Steps, func(s upgrade.Step) bool { return s.Kind == upgrade.StepReboot }) {
		a.say("\nThe host reboots on the way, and this command ends with it. refit-resume.service goes on with the operation after the boot, before the kubelet starts; apply the same file again to see how it went.")
	}
}

// refused keeps a refusal for programs.
func (a *applying) refused(err error) error {
	var blocked *upgrade.Blocked
	if errors.As(err, &blocked) {
		a.result.Refusal = blocked
	}
	return err
}

func (a *applying) follow(ctx context.Context, op upgrade.Operation) error {
	columns := width(a.screen)
	progress := &apply.Progress{W: a.screen, Width: columns, Colour: colourful(columns), Now: time.Now}
	record, err := a.applier.Follow(ctx, op.ID, progress.Show)
	progress.Close()
	outcome := apply.OutcomeOf(record)
	if outcome.Operation.ID == "" {
		outcome.Operation = v1alpha1.Operation{ID: op.ID, Type: op.Plan.Type, State: v1alpha1.OperationProcessing, StepsTotal: int32(len(op.Plan.Steps))}
	}
	a.result.Operation, a.result.EndTime, a.result.NotUndone = &outcome.Operation, outcome.EndTime, outcome.NotUndone
	var never *apply.NotBegunError
	switch {
	case errors.As(err, &never):
		return err
	case ctx.Err() != nil:
		return ended{state: apply.Processing, message: "operation " + op.ID + " goes on; to follow it again, apply the same file"}
	case rebooting(record):
		return ended{state: apply.Processing, message: "operation " + op.ID + " reboots the host, and goes on after the boot; to see how it went, apply the same file"}
	case !record.Finished():
		return errors.Join(ended{state: apply.Stopped, message: stopped(op.ID)}, err)
	}
	return a.conclude(record, outcome)
}

// rebooting: a host that goes down stops the executor as it does everything else.
func rebooting(r journal.Record) bool {
	i := r.Next()
	return !r.Finished() && !r.RollingBack && i < len(r.Steps) && r.Steps[i].Kind == upgrade.StepReboot && r.Steps[i].State == journal.StepBegun
}

func stopped(id string) string {
	return fmt.Sprintf("operation %s has stopped before its end, and nothing works on it now (journalctl -u refit-op-%s.service says why): apply the same file to go on with it", id, id)
}

// conclude tells how it went.
func (a *applying) conclude(record journal.Record, outcome apply.Outcome) error {
	took := record.EndTime.Sub(record.StartTime).Round(time.Second)
	if outcome.State == apply.Successful {
		a.result.State = apply.Successful
		a.say("\nDone in %s: the host is what the Machine asks for.", took)
		for _, said := range record.StillDown() {
			a.say("But %s", said)
		}
		return nil
	}
	step := ""
	if record.FailedStep != "" {
		step = " at " + string(record.FailedStep)
	}
	return ended{state: outcome.State, message: fmt.Sprintf("operation %s failed%s after %s: %s: %s", record.Operation.ID, step, took, outcome.Operation.Reason, record.Message)}
}

func (a *applying) say(format string, args ...any) {
	_, _ = fmt.Fprintln(a.screen, redact.URIs(fmt.Sprintf(format, args...)))
}
