package apt

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// privateSecurity is a state apart from that of Candidates: each update of one would throw away the lists of the other.
const privateSecurity = "apt-security"

// securityUpdates are what the host's security sources have newer than what is installed, and
// what that needs. apt itself decides, as in unattended-upgrades: it is given no sources but those,
// removes nothing, and keeps what is on hold.
func (a *Apt) securityUpdates(ctx context.Context, apart []string) ([]upgrade.Candidate, error) {
	sources, err := a.securitySources(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.writeSources(privateSecurity, sources); err != nil {
		return nil, err
	}
	if err := a.update(ctx, privateSecurity); err != nil {
		return nil, err
	}
	changes, err := a.securityUpgrade(ctx, apart)
	if err != nil {
		return nil, err
	}
	held, err := a.heldNames(ctx, apart)
	if err != nil {
		return nil, err
	}
	offered, err := a.securityOffers(ctx, sources, append(packagefile.Names(changes), held...))
	if err != nil {
		return nil, err
	}
	out, err := exactly(changes, offered)
	if err != nil {
		return nil, err
	}
	return a.addHeld(ctx, out, held, offered)
}

// securitySources are the configured sources that are the distribution's security updates: by
// the name of the suite, or by what the index that the host has of it says.
func (a *Apt) securitySources(ctx context.Context) ([]upgrade.CandidateSource, error) {
	entries, err := a.entries()
	if err != nil {
		return nil, err
	}
	labelled, err := a.labelled(ctx)
	if err != nil {
		return nil, err
	}
	var out []upgrade.CandidateSource
	for _, e := range entries {
		source := upgrade.CandidateSource{Name: "security", URI: e.URI, Components: e.Components, SignedBy: e.SignedBy}
		for _, suite := range e.Suites {
			if isSecurity(suite) || slices.Contains(labelled, e.key+"\t"+strings.Trim(suite, "/")) {
				source.Suites = append(source.Suites, suite)
			}
		}
		same := func(o upgrade.CandidateSource) bool {
			return sameURI(o.URI, source.URI) && slices.Equal(o.Suites, source.Suites) && slices.Equal(o.Components, source.Components)
		}
		if len(source.Suites) > 0 && !slices.ContainsFunc(out, same) {
			out = append(out, source)
		}
	}
	if len(out) == 0 {
		return nil, wait(upgrade.ReasonSourceUnknown, "no package source of this host is the distribution's security updates (a suite that ends with -security, or the label Debian-Security): add it, or set spec.os.securityUpdates to None")
	}
	return out, nil
}

// isSecurity: bookworm-security, jammy-security, jammy-infra-security; buster/updates before that.
func isSecurity(suite string) bool {
	suite = strings.TrimSuffix(suite, "/")
	return strings.HasSuffix(suite, "-security") || strings.HasSuffix(suite, "/updates") && !strings.HasPrefix(suite, "/")
}

// labelled are the entries and suites whose index on the host says that it is of security updates.
func (a *Apt) labelled(ctx context.Context) ([]string, error) {
	result, err := a.run(ctx, queryTimeout, a.apt("apt-get", "indextargets", "--format", "$(SOURCESENTRY)\t$(RELEASE)\t$(LABEL)\t$(SUITE)", "Created-By: Packages"))
	if err != nil {
		return nil, fmt.Errorf("listing the package indexes: %w", err)
	}
	var out []string
	for line := range strings.Lines(result.Stdout) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) == 4 && (fields[2] == "Debian-Security" || isSecurity(fields[3])) {
			out = append(out, strings.TrimPrefix(fields[0], strings.TrimSuffix(a.Root, "/"))+"\t"+strings.Trim(fields[1], "/"))
		}
	}
	return out, nil
}

// securityUpgrade is what apt would do with the security sources alone.
func (a *Apt) securityUpgrade(ctx context.Context, apart []string) ([]upgrade.PackageChange, error) {
	preferences, err := a.leaveAlone(apart)
	if err != nil {
		return nil, err
	}
	args := append(a.privateIn(privateSecurity), "-o", "Dir::Etc::preferences="+preferences, "-s", "-q", "--no-install-recommends", "--with-new-pkgs", "upgrade")
	result, err := a.run(ctx, queryTimeout, a.apt("apt-get", args...))
	if err != nil && ctx.Err() == nil && command.ExitCode(err) > 0 {
		return nil, wait(upgrade.FindingTransactionRefused, "apt cannot tell which security updates it would install: %s", solverText(result))
	}
	if err != nil {
		return nil, fmt.Errorf("asking apt for the security updates: %w", err)
	}
	return parseUpgrade(result.Stdout)
}

// leaveAlone writes preferences under which some packages have no candidate, on top of the host's own.
func (a *Apt) leaveAlone(apart []string) (string, error) {
	own, err := os.ReadFile(a.path("etc/apt/preferences"))
	if err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("reading the host's package preferences: %w", err)
	}
	var text strings.Builder
	for _, name := range apart {
		fmt.Fprintf(&text, "Package: %s\nPin: version *\nPin-Priority: -1\n\n", name)
	}
	text.Write(own)
	path := a.state(privateSecurity, "preferences")
	if err := files.WriteAtomic(path, []byte(text.String()), 0o644); err != nil {
		return "", fmt.Errorf("writing private package preferences: %w", err)
	}
	return path, nil
}

// parseUpgrade reads the changes of a simulation. What it would remove, or cannot be read, is refused.
func parseUpgrade(output string) ([]upgrade.PackageChange, error) {
	var changes []upgrade.PackageChange
	for line := range strings.Lines(output) {
		m := simulatedInstall.FindStringSubmatch(line)
		switch {
		case m != nil:
			changes = append(changes, upgrade.PackageChange{Name: m[1], To: m[2], From: simulatedFrom(line)})
		case simulatedAny.MatchString(line):
			return nil, refuse(upgrade.FindingTransactionWouldRemove, "the security updates would do more than update: %q; nothing of them is applied", strings.TrimSpace(line))
		}
	}
	return changes, nil
}

// simulatedFrom is the version that is installed in a line such as: Inst a [1] (2 Debian:12 [amd64]).
func simulatedFrom(line string) string {
	before, _, _ := strings.Cut(line, "(")
	_, rest, found := strings.Cut(before, "[")
	from, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return ""
	}
	return from
}

func (a *Apt) heldNames(ctx context.Context, apart []string) ([]string, error) {
	holds, err := a.Holds(ctx)
	return slices.DeleteFunc(holds, func(name string) bool { return slices.Contains(apart, name) }), err
}

// securityOffers are the named packages in the private indexes.
func (a *Apt) securityOffers(ctx context.Context, sources []upgrade.CandidateSource, names []string) ([]upgrade.Candidate, error) {
	arch, err := a.architecture(ctx)
	if err != nil {
		return nil, err
	}
	indexes, err := a.indexes(ctx, a.privateIn(privateSecurity)...)
	if err != nil {
		return nil, err
	}
	var all []upgrade.Candidate
	for _, ix := range indexes {
		source, ok := requested(ix, sources)
		if !ok {
			continue
		}
		ix.base = source.URI
		found, err := a.candidatesIn(ctx, ix, arch, names)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// exactly finds the file of each change; one that no index has is refused, since nothing could be verified.
func exactly(changes []upgrade.PackageChange, offered []upgrade.Candidate) ([]upgrade.Candidate, error) {
	var out []upgrade.Candidate
	for _, c := range changes {
		at := slices.IndexFunc(offered, func(o upgrade.Candidate) bool { return o.Name == c.Name && o.Version == c.To })
		if at < 0 {
			return nil, wait(upgrade.ReasonVersionNotFound, "apt would install %s %s as a security update, and no index has it with a digest for this architecture", c.Name, c.To)
		}
		found := offered[at]
		found.From = c.From
		out = append(out, found)
	}
	return out, nil
}

// addHeld adds the newest of what the owner's holds keep away, to be told of.
func (a *Apt) addHeld(ctx context.Context, out []upgrade.Candidate, held []string, offered []upgrade.Candidate) ([]upgrade.Candidate, error) {
	installed, err := a.Query(ctx, held)
	if err != nil {
		return nil, err
	}
	for _, p := range installed {
		var newest *upgrade.Candidate
		for i, c := range offered {
			if c.Name == p.Name && upgrade.CompareDeb(c.Version, p.Version) > 0 && (newest == nil || upgrade.CompareDeb(c.Version, newest.Version) > 0) {
				newest = &offered[i]
			}
		}
		if newest != nil {
			c := *newest
			c.From, c.Held = p.Version, true
			out = append(out, c)
		}
	}
	return out, nil
}
