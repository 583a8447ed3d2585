package setup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/manifest/rules"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Host answers a person who asks this host something, without a cluster.
type Host struct {
	units   *launch.Executor
	local   *launch.Local
	records *store.Store
	paths   Paths
}

// NewHost finds the executor.
func NewHost(config agent.Config) (*Host, error) {
	program, err := ExecutorPath(config)
	if err != nil {
		return nil, err
	}
	paths := Paths{}.withDefaults()
	return &Host{
		units:   &launch.Executor{Units: systemd.New(), Program: program, Name: "cli", RunDir: paths.Run},
		local:   &launch.Local{Program: program, Runner: command.Exec{}},
		records: store.New(paths.State),
		paths:   paths,
	}, nil
}

// Facts probes the host the way the agent does; where there is no systemd, or no right to use it, as a child.
func (h *Host) Facts(ctx context.Context, packages []string) (upgrade.Facts, error) {
	if os.Geteuid() == 0 {
		facts, err := h.units.Facts(ctx, packages)
		if !errors.Is(err, systemd.ErrUnavailable) {
			return facts, err
		}
	}
	return h.local.Facts(ctx, packages)
}

// Candidates reads what repositories offer.
func (h *Host) Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	if os.Geteuid() == 0 {
		candidates, err := h.units.Candidates(ctx, request)
		if !errors.Is(err, systemd.ErrUnavailable) {
			return candidates, err
		}
	}
	return h.local.Candidates(ctx, request)
}

// Inventory is Facts with what repositories offer: those that the host has an index of,
// and for each minor those that a hop to it would need, which are asked for it. What
// cannot be had becomes a problem of packages.indexes.
func (h *Host) Inventory(ctx context.Context, packages, minors []string) (upgrade.Facts, error) {
	h.units.Indexes, h.local.Indexes = true, true
	facts, err := h.Facts(ctx, packages)
	if err != nil {
		return facts, err
	}
	h.remember(&facts)
	for _, minor := range minors {
		if err := h.addMinor(ctx, &facts, packages, minor); err != nil {
			facts.Problems = append(facts.Problems, upgrade.Problem{Field: "packages.indexes", Message: err.Error()})
		}
	}
	return facts, nil
}

// remember adds to the facts what this very host has run, or why that is not known.
func (h *Host) remember(facts *upgrade.Facts) {
	record, err := h.records.RecordOf(facts.Host.MachineID)
	if err != nil {
		facts.Problems = append(facts.Problems, upgrade.Problem{Field: upgrade.FieldRecord, Message: err.Error()})
	}
	facts.Record = record
}

func (h *Host) addMinor(ctx context.Context, facts *upgrade.Facts, packages []string, minor string) error {
	target := v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(minor + ".0")}}
	request, _, err := upgrade.Sources(*facts, target, v1alpha1.MachineSpec{})
	if err != nil {
		return fmt.Errorf("choosing package sources of %s: %w", minor, err)
	}
	request.Packages = append(upgrade.ManagedPackages(), packages...)
	request.Sources = slices.DeleteFunc(request.Sources, func(s upgrade.CandidateSource) bool {
		_, unknown := facts.Offered(upgrade.CandidateRequest{Sources: []upgrade.CandidateSource{s}, Packages: request.Packages})
		return len(unknown) == 0
	})
	if len(request.Sources) == 0 {
		return nil
	}
	candidates, err := h.Candidates(ctx, request)
	if err != nil {
		return fmt.Errorf("reading package sources of %s: %w", minor, err)
	}
	facts.Packages.Indexes = append(facts.Packages.Indexes, upgrade.IndexesOf(request, candidates)...)
	return nil
}

// Document is a Machine that was read from a file, and where in the file its fields are.
type Document struct {
	machine *v1alpha1.Machine
	object  *manifest.Object
}

// Statement is what a person at a host without a cluster says that nobody there can look up.
type Statement struct {
	// APIServer is the version of the oldest API server that the kubelet meets; "" for none stated.
	APIServer string
}

// Draft is a plan that nobody has staged, and what it was made from.
type Draft struct {
	Machine *v1alpha1.Machine
	Facts   upgrade.Facts
	Plan    upgrade.Plan
	// List is the plan, or its refusal, for people and programs.
	List preview.PlanList
}

// Plan is what would change if the document were this host's Machine. Nothing is staged, nothing is changed.
func (h *Host) Plan(ctx context.Context, document Document, stated Statement) (Draft, error) {
	if err := asRoot(os.Geteuid(), "can see all that a plan is made from (the runtime's socket, the package lists, the kubelet's files)"); err != nil {
		return Draft{}, err
	}
	machine, object := document.machine, document.object
	facts, err := h.Facts(ctx, planning.PackageNames(machine.Spec))
	if err != nil {
		return Draft{}, fmt.Errorf("probing the host: %w", err)
	}
	h.remember(&facts)
	if message := upgrade.RoleContradiction(machine.Spec.Roles, &facts); message != "" {
		return Draft{}, object.Errorf("spec.roles", "%s", message)
	}
	assignment, err := document.assignment(stated)
	if err != nil {
		return Draft{}, err
	}
	now := time.Now()
	plan, err := planning.Draft(ctx, h, upgrade.PlanInput{
		Machine: machine.Name, Spec: machine.Spec, Assignment: assignment,
		Facts: facts, Record: facts.Record, Kept: store.New(store.DefaultDir).Kept(), Standalone: true, Now: now,
	})
	if full := files.NoSpace(err); full != nil && upgrade.IsBlocked(err) == nil {
		err = full
	}
	if err != nil && upgrade.IsBlocked(err) == nil {
		err = &upgrade.Blocked{Reason: planning.ReasonSourceUnavailable, Message: err.Error()}
	}
	return Draft{Machine: machine, Facts: facts, Plan: plan, List: preview.One(machine, facts, assignment, plan, now, err)}, nil
}

// AssignmentID names what the document asks for: the same wish has the same name, so that
// a file that is applied again finds the operation that is under way for it.
func (d Document) AssignmentID() (string, error) {
	text, err := upgrade.MarshalStable(struct {
		Name string               `json:"name"`
		Spec v1alpha1.MachineSpec `json:"spec"`
	}{d.machine.Name, d.machine.Spec})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("local-%.6x", sha256.Sum256(text)), nil
}

// assignment is the one that a host gives itself: the whole wish in one hop.
func (d Document) assignment(stated Statement) (v1alpha1.Assignment, error) {
	id, err := d.AssignmentID()
	if err != nil {
		return v1alpha1.Assignment{}, err
	}
	assignment := v1alpha1.Assignment{ID: id, Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{OS: true, Certificates: true}}
	if v := d.machine.Spec.Versions; v != nil {
		assignment.Target.Versions = *v
	}
	if assignment.Target.ControlPlane != "" {
		assignment.KubeadmRole = v1alpha1.KubeadmFirst
	}
	if stated.APIServer != "" {
		assignment.Skew = &v1alpha1.Skew{MinAPIServer: stated.APIServer, MaxAPIServer: stated.APIServer}
	}
	return assignment, nil
}

// ReadMachine reads a file with one Machine, - being the standard input, as strictly as
// the API server would.
func ReadMachine(file string, stdin io.Reader) (Document, error) {
	objects, err := manifest.Read([]string{file}, manifest.Options{Namespace: "default", Kinds: []string{"Machine"}, Check: rules.Check, Stdin: stdin})
	if err != nil {
		return Document{}, err
	}
	if len(objects) != 1 {
		return Document{}, objects[1].Errorf("kind", "this is the second of %d Machines: a host has one", len(objects))
	}
	machine := &v1alpha1.Machine{}
	if err := objects[0].Decode(machine); err != nil {
		return Document{}, err
	}
	return Document{machine, &objects[0]}, nil
}
