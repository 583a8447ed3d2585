package apt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// private are apt's own options that keep everything of a request under our state
// directory: the lists of the host, which people and their tools use, stay as they are.
func (a *Apt) private() []string { return a.privateIn("apt") }

func (a *Apt) privateIn(dir string) []string {
	return []string{
		"-o", "Dir::State::lists=" + a.state(dir, "lists"),
		"-o", "Dir::Cache=" + a.state(dir, "cache"),
		"-o", "Dir::Etc::sourcelist=/dev/null",
		"-o", "Dir::Etc::sourceparts=" + a.state(dir, "sources.d"),
		"-o", "Acquire::Languages=none",
		"-o", "Acquire::GzipIndexes=false",
		"-o", "Acquire::http::Timeout=30",
		"-o", "Acquire::https::Timeout=30",
	}
}

// Candidates fetches the signed indexes of the sources in a request and returns what
// they offer of its packages. apt itself verifies the signatures.
func (a *Apt) Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	if err := kind.CheckNames(request.Packages); err != nil {
		return nil, err
	}
	if request.Security {
		return a.securityUpdates(ctx, request.Packages)
	}
	if err := a.writeSources("apt", request.Sources); err != nil {
		return nil, err
	}
	if err := a.update(ctx, "apt"); err != nil {
		return nil, err
	}
	arch, err := a.architecture(ctx)
	if err != nil {
		return nil, err
	}
	indexes, err := a.indexes(ctx, a.private()...)
	if err != nil {
		return nil, err
	}
	var all []upgrade.Candidate
	for _, ix := range indexes {
		source, ok := requested(ix, request.Sources)
		if !ok {
			continue
		}
		ix.base = source.URI
		found, err := a.candidatesIn(ctx, ix, arch, request.Packages)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, a.offers().Remember(request.Sources, all)
}

// requested finds the source of a request that an index belongs to, by the number in its file's name.
func requested(ix index, sources []upgrade.CandidateSource) (upgrade.CandidateSource, bool) {
	file, _, _ := strings.Cut(filepath.Base(ix.source), ".")
	n, err := strconv.Atoi(file)
	if err != nil || n < 0 || n >= len(sources) {
		return upgrade.CandidateSource{}, false
	}
	return sources[n], true
}

// writeSources makes the request's sources the only ones of a private state.
func (a *Apt) writeSources(private string, sources []upgrade.CandidateSource) error {
	dir := a.state(private, "sources.d")
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clearing the private package sources: %w", err)
	}
	for _, d := range []string{dir, a.state(private, "lists/partial"), a.state(private, "cache/archives/partial")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making the private package state: %w", err)
		}
	}
	for i, source := range sources {
		text, err := a.sourceText(source)
		if err != nil {
			return err
		}
		if err := files.WriteAtomic(filepath.Join(dir, strconv.Itoa(i)+".sources"), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing a private package source: %w", err)
		}
	}
	return nil
}

func (a *Apt) update(ctx context.Context, private string) error {
	args := append(a.privateIn(private), "-q", "-o", "APT::Update::Error-Mode=any", "update")
	result, err := a.run(ctx, updateTimeout, a.apt("apt-get", args...))
	if err == nil && !strings.Contains(result.Output(), "W: Failed to fetch") {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("fetching the package indexes: %w", err)
	}
	return fetchFailure("fetching the package indexes", result.Output(), err)
}
