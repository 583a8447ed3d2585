package rpm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// advisory is one entry of updateinfo.xml.
type advisory struct {
	Type     string `xml:"type,attr"`
	Packages []struct {
		Name string `xml:"name,attr"`
		Arch string `xml:"arch,attr"`
		evrAttributes
	} `xml:"pkglist>collection>package"`
}

type evrAttributes struct {
	Epoch   string `xml:"epoch,attr"`
	Version string `xml:"version,attr"`
	Release string `xml:"release,attr"`
}

func (v evrAttributes) String() string { return evr{v.Epoch, v.Version, v.Release}.String() }

// securityUpdates are the newest versions that security advisories of the host's repositories
// name for what is installed, as dnf upgrade --security has them. Packages that are kept side by side,
// such as kernels, are left out, as by every plan. What an update needs besides is for rpm to refuse
// when it is staged.
func (r *RPM) securityUpdates(ctx context.Context, apart []string) ([]upgrade.Candidate, error) {
	if err := files.PrivateDir(r.state("rpm")); err != nil {
		return nil, err
	}
	repos, err := r.repos()
	if err != nil {
		return nil, err
	}
	installed, err := r.onceInstalled(ctx, apart)
	if err != nil {
		return nil, err
	}
	holds, err := r.Holds(ctx)
	if err != nil {
		return nil, err
	}
	best, advised := map[string]upgrade.Candidate{}, false
	for i := range repos {
		found, has, err := r.advisedIn(ctx, &repos[i], installed)
		if err != nil {
			return nil, err
		}
		advised = advised || has
		for _, c := range found {
			if have, ok := best[c.Name]; !ok || upgrade.CompareRPM(c.Version, have.Version) > 0 {
				c.From, c.Held = installed[c.Name], slices.Contains(holds, c.Name)
				best[c.Name] = c
			}
		}
	}
	if !advised {
		return nil, wait(upgrade.ReasonSourceUnknown, "no repository of this host has security advisories (updateinfo), so its security updates cannot be told from others: add one that has, or set spec.os.securityUpdates to None")
	}
	var out []upgrade.Candidate
	for _, name := range slices.Sorted(maps.Keys(best)) {
		out = append(out, best[name])
	}
	return out, nil
}

// onceInstalled are the versions of the packages that are there once and have no field of their own.
func (r *RPM) onceInstalled(ctx context.Context, apart []string) (map[string]string, error) {
	headers, err := r.installed(ctx)
	if err != nil {
		return nil, err
	}
	versions, times := map[string]string{}, map[string]int{}
	for _, h := range headers {
		versions[h.name] = h.version
		times[h.name]++
	}
	for name := range versions {
		if times[name] > 1 || installOnly(name) || slices.Contains(apart, name) {
			delete(versions, name)
		}
	}
	return versions, nil
}

// advisedIn are what the security advisories of one repository name newer than what is
// installed, and that the repository has; has is false for one without advisories.
func (r *RPM) advisedIn(ctx context.Context, p *repo, installed map[string]string) (found []upgrade.Candidate, has bool, err error) {
	from := repository{name: p.id, uri: p.uri, signedBy: p.facts().SignedBy, host: p, kind: "updateinfo"}
	ix, err := r.load(ctx, from, maxPrimary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	wanted, err := newerIn(ix.path, installed)
	if err != nil || len(wanted) == 0 {
		return nil, true, err
	}
	from.kind = ""
	if ix, err = r.load(ctx, from, maxPrimary); err != nil {
		return nil, true, err
	}
	offered, err := candidatesIn(ix.path, ix.base, slices.Collect(maps.Keys(wanted)))
	for _, c := range offered {
		if upgrade.CompareRPM(c.Version, wanted[c.Name]) == 0 {
			found = append(found, c)
		}
	}
	return found, true, err
}

// newerIn are the newest versions that security advisories name for installed packages.
func newerIn(path string, installed map[string]string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening security advisories: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	reader, err := decompress(path, f)
	if err != nil {
		return nil, err
	}
	defer reader.Close() //nolint:errcheck // only read from
	newest := map[string]string{}
	err = advisoriesIn(io.LimitReader(reader, maxPrimary), func(a advisory) {
		if a.Type != "security" {
			return
		}
		for _, p := range a.Packages {
			have, ok := installed[p.Name]
			version := p.String()
			if !ok || p.Arch != "noarch" && p.Arch != basearch() || upgrade.CompareRPM(version, have) <= 0 {
				continue
			}
			if newest[p.Name] == "" || upgrade.CompareRPM(version, newest[p.Name]) > 0 {
				newest[p.Name] = version
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the security advisories %s: %w", path, err)
	}
	return newest, nil
}

// advisoriesIn calls visit for each advisory.
func advisoriesIn(reader io.Reader, visit func(advisory)) error {
	return elementsIn(reader, "update", func(a advisory) {
		a.Type = strings.ToLower(a.Type)
		visit(a)
	})
}
