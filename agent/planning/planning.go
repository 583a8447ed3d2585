// Package planning makes the plan for an assignment: facts, candidates, plan, stage,
// freeze. It disturbs nothing on the host, and may be interrupted at any point.
//
//	facts ──> which repositories ──> candidates ──> plan ──> stage ──> frozen on disk
//	              │                      │            │        │
//	              └───────── refused: a reason, terminal or passing ┘
package planning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Reasons of failures on the way to a plan that may pass by themselves.
const (
	ReasonProbeFailed       = "ProbeFailed"
	ReasonSourceUnavailable = "SourceUnavailable"
	ReasonStageFailed       = "StageFailed"
	ReasonStateNotWritable  = "StateNotWritable"
)

// Executor probes the host and stages plans.
type Executor interface {
	Facts(ctx context.Context, packages []string) (upgrade.Facts, error)
	Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error)
	Stage(ctx context.Context, plan upgrade.Plan) (launch.StageResult, error)
}

// Records keeps frozen plans, and what ran before.
type Records interface {
	SavePlan(plan store.FrozenPlan) error
	Record() []v1alpha1.Versions
	Kept() upgrade.Kept
	Rebooted() []string
}

// Planner makes plans.
type Planner struct {
	Executor Executor
	Records  Records
}

// Outcome is a frozen plan or a refusal; facts come with both when they could be had.
type Outcome struct {
	Facts   *upgrade.Facts
	Frozen  *store.FrozenPlan
	Refused *v1alpha1.Failure
	// Security is what was found of security updates, when that was looked for.
	Security *[]upgrade.Candidate
}

// Plan makes, stages and freezes the plan for the Machine's assignment.
func (p *Planner) Plan(ctx context.Context, machine *v1alpha1.Machine) Outcome {
	var out Outcome
	facts, err := p.Executor.Facts(ctx, PackageNames(machine.Spec))
	if err != nil {
		return refused(out, ReasonProbeFailed, fmt.Errorf("probing the host: %w", err))
	}
	out.Facts = &facts
	lookup := &remembering{lookup: p.Executor}
	plan, err := Draft(ctx, lookup, upgrade.PlanInput{
		Machine: machine.Name, Spec: machine.Spec, Assignment: *machine.Status.Assignment,
		Facts: facts, Record: p.Records.Record(), Kept: p.Records.Kept(), Rebooted: p.Records.Rebooted(), Now: time.Now(),
	})
	out.Security = lookup.security
	if err != nil {
		return refused(out, ReasonSourceUnavailable, err)
	}
	return p.freeze(ctx, out, plan, machine.Status.Assignment.Generation)
}

// Freeze stages a plan that Draft has made, and keeps it: it changes no more.
func (p *Planner) Freeze(ctx context.Context, plan upgrade.Plan, generation int64) Outcome {
	return p.freeze(ctx, Outcome{}, plan, generation)
}

func (p *Planner) freeze(ctx context.Context, out Outcome, plan upgrade.Plan, generation int64) Outcome {
	result, err := p.Executor.Stage(ctx, plan)
	if err != nil {
		return refused(out, ReasonStageFailed, fmt.Errorf("staging the plan: %w", err))
	}
	plan.Findings = append(plan.Findings, result.Findings...)
	if result.Refused {
		out.Refused = blockedBy(result.Findings)
		return out
	}
	frozen := store.FrozenPlan{Generation: generation, Plan: plan, StageDuration: result.Duration}
	if err := p.Records.SavePlan(frozen); err != nil {
		return refused(out, ReasonStateNotWritable, fmt.Errorf("freezing the plan: %w", err))
	}
	out.Frozen = &frozen
	return out
}

// Candidates reads what package sources offer.
type Candidates interface {
	Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error)
}

// Draft is the plan before it is staged: it looks up the candidates and asks the planner.
// What is refused whatever repositories offer is refused before any is asked.
func Draft(ctx context.Context, lookup Candidates, in upgrade.PlanInput) (upgrade.Plan, error) {
	needed, err := upgrade.Check(in)
	if err != nil {
		return upgrade.Plan{}, fmt.Errorf("planning assignment %s: %w", in.Assignment.ID, err)
	}
	lookupErr := security(ctx, lookup, &in)
	plan, err := drafted(ctx, lookup, in, needed)
	if err != nil {
		return upgrade.Plan{}, err
	}
	switch {
	case lookupErr != nil && plan.Empty(): // they may be all that is to be done
		return upgrade.Plan{}, lookupErr
	case lookupErr != nil:
		plan.Findings = append(plan.Findings, upgrade.SecurityLookupFailed(lookupErr))
	}
	return plan, nil
}

// security looks up the security updates that a spec asks for. Where they cannot be had, the
// rest of the plan goes on without them.
func security(ctx context.Context, lookup Candidates, in *upgrade.PlanInput) error {
	if !upgrade.WantsSecurityUpdates(in.Spec) || !in.Assignment.Target.OS {
		return nil
	}
	found, err := lookup.Candidates(ctx, upgrade.SecurityRequest(in.Spec))
	in.SecurityKnown = true
	if err != nil {
		return fmt.Errorf("looking for security updates: %w", err)
	}
	in.Security = found
	return nil
}

// remembering keeps what a lookup found of security updates: the host reports it.
type remembering struct {
	lookup   Candidates
	security *[]upgrade.Candidate
}

// Candidates is the lookup's.
func (r *remembering) Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	found, err := r.lookup.Candidates(ctx, request)
	if err == nil && request.Security {
		r.security = &found
	}
	return found, err //nolint:wrapcheck // says what it was looking for
}

// drafted looks first into the sources that are likely to have what is needed, and into the
// others only for what is not found there: one of those that is away keeps back nothing else.
func drafted(ctx context.Context, lookup Candidates, in upgrade.PlanInput, needed bool) (upgrade.Plan, error) {
	if !needed {
		return newPlan(in)
	}
	request, _, err := upgrade.Sources(in.Facts, in.Assignment.Target, in.Spec)
	if err != nil {
		return upgrade.Plan{}, fmt.Errorf("choosing package sources: %w", err)
	}
	if likely, fewer := request.Likely(); fewer {
		plan, err := from(ctx, lookup, in, likely)
		if b := upgrade.IsBlocked(err); b == nil || b.Reason != upgrade.ReasonVersionNotFound {
			return plan, err
		}
	}
	return from(ctx, lookup, in, request)
}

// from is the plan with what some sources offer.
func from(ctx context.Context, lookup Candidates, in upgrade.PlanInput, request upgrade.CandidateRequest) (upgrade.Plan, error) {
	if len(request.Packages) > 0 {
		found, err := lookup.Candidates(ctx, request)
		if err != nil {
			return upgrade.Plan{}, fmt.Errorf("reading package sources (%s): %w", sourceURIs(request), err)
		}
		in.Candidates = found
	}
	return newPlan(in)
}

func newPlan(in upgrade.PlanInput) (upgrade.Plan, error) {
	plan, err := upgrade.NewPlan(in)
	if err != nil {
		return upgrade.Plan{}, fmt.Errorf("planning assignment %s: %w", in.Assignment.ID, err)
	}
	return plan, nil
}

// PackageNames are the packages that a spec names: the facts are to say how they are.
func PackageNames(spec v1alpha1.MachineSpec) []string {
	if spec.OS == nil {
		return nil
	}
	names := make([]string, 0, len(spec.OS.Packages))
	for _, p := range spec.OS.Packages {
		names = append(names, p.Name)
	}
	return names
}

// refused keeps the reason of a refusal that has one; anything else may pass by itself.
func refused(out Outcome, reason string, err error) Outcome {
	failure := &v1alpha1.Failure{Reason: reason, Message: err.Error()}
	var blocked *upgrade.Blocked
	if errors.As(err, &blocked) {
		failure = &v1alpha1.Failure{Reason: blocked.Reason, Message: blocked.Message, Terminal: blocked.Terminal}
	} else if full := files.NoSpace(err); full != nil {
		failure = &v1alpha1.Failure{Reason: full.Reason, Message: full.Message}
	}
	out.Refused = failure
	return out
}

// blockedBy is the refusal that the findings of staging amount to.
func blockedBy(findings []upgrade.Finding) *v1alpha1.Failure {
	failure := &v1alpha1.Failure{Reason: ReasonStageFailed, Terminal: true}
	var messages []string
	for _, finding := range findings {
		if finding.Severity != "Error" {
			continue
		}
		if len(messages) == 0 {
			failure.Reason = finding.Reason
		}
		messages = append(messages, finding.Message)
	}
	failure.Message = strings.Join(messages, "; ")
	if failure.Message == "" {
		failure.Message = "the executor refused to stage the plan and did not say why; see: journalctl -u refit-probe-stage.service"
	}
	return failure
}

func sourceURIs(request upgrade.CandidateRequest) string {
	uris := make([]string, 0, len(request.Sources))
	for _, source := range request.Sources {
		uris = append(uris, source.URI)
	}
	return strings.Join(uris, ", ")
}
