package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Local runs the executor as a child, for a person at a host without systemd or
// without the right to start units. It probes only; operations are systemd's.
type Local struct {
	// Program is the absolute path of refit-executor.
	Program string
	// Runner starts it.
	Runner command.Runner
	// Indexes asks with the facts for what the host's package indexes offer.
	Indexes bool
}

// Facts probes the host.
func (l *Local) Facts(ctx context.Context, packages []string) (upgrade.Facts, error) {
	args := []string{"facts", "-o", "json"}
	for _, name := range packages {
		args = append(args, "--package", name)
	}
	if l.Indexes {
		args = append(args, "--indexes")
	}
	var facts upgrade.Facts
	return facts, l.run(ctx, &facts, args...)
}

// Candidates reads what repositories offer.
func (l *Local) Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	dir, err := os.MkdirTemp("", "refit-")
	if err != nil {
		return nil, fmt.Errorf("making a place for the request: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the candidates request: %w", err)
	}
	file := filepath.Join(dir, "request.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("writing the candidates request: %w", err)
	}
	var candidates []upgrade.Candidate
	return candidates, l.run(ctx, &candidates, "candidates", "--request", file)
}

func (l *Local) run(ctx context.Context, into any, args ...string) error {
	dir, err := os.MkdirTemp("", "refit-")
	if err != nil {
		return fmt.Errorf("making a place for the result: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	output := filepath.Join(dir, "result.json")
	argv := append(append([]string{l.Program}, args...), "--output", output)
	if _, err := l.Runner.Run(ctx, command.Command{Argv: argv, Timeout: candidatesTimeout}); err != nil {
		return fmt.Errorf("running %s %s: %w", l.Program, args[0], err)
	}
	return readResult(output, into)
}
