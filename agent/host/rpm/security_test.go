package rpm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// advise adds advisories to the repository, each "type name version release", and signs it anew.
func (r *testRepository) advise(entries ...string) {
	r.t.Helper()
	var text strings.Builder
	text.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<updates>\n")
	for _, entry := range entries {
		f := strings.Fields(entry)
		text.WriteString(`<update from="x" status="stable" type="` + f[0] + `" version="1"><id>A-1</id><title>t</title><pkglist><collection><name>c</name><package name="` +
			f[1] + `" version="` + f[2] + `" release="` + f[3] + `" epoch="0" arch="noarch"><filename>x.rpm</filename></package></collection></pkglist></update>` + "\n")
	}
	text.WriteString("</updates>\n")
	path := filepath.Join(r.t.TempDir(), "updateinfo.xml")
	require.NoError(r.t, os.WriteFile(path, []byte(text.String()), 0o644))
	need(r.t, "modifyrepo_c")
	tool(r.t, "modifyrepo_c", "--mdtype=updateinfo", path, r.path("v1.37", "repodata"))
	r.sign("v1.37", "refit-test")
}

func (h *host) updates(apart ...string) []string {
	h.t.Helper()
	found, err := h.Candidates(h.t.Context(), upgrade.CandidateRequest{Security: true, Packages: apart})
	require.NoError(h.t, err)
	out := []string{}
	for _, c := range found {
		text := c.Name + " " + c.From + " " + c.Version
		if c.Held {
			text += " held"
		}
		out = append(out, text)
		assert.Regexp(h.t, "^[0-9a-f]{64}$", c.SHA256, "exactly this file")
	}
	return out
}

func TestSecurityUpdatesAreWhatAdvisoriesName(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, rpmfile{name: "openssl", version: "3.0.16-1"}, rpmfile{name: "openssl", version: "3.0.17-1"}, rpmfile{name: "curl", version: "2-1"},
		rpmfile{name: "bash", version: "6-1"}, rpmfile{name: "runc", version: "2-1"}, rpmfile{name: "absent", version: "2-1"})
	h.configure(r.uri("v1.37"), "")
	h.installs(rpmfile{name: "openssl", version: "3.0.14-1"}, rpmfile{name: "curl", version: "1-1"}, rpmfile{name: "bash", version: "5-1"}, rpmfile{name: "runc", version: "1-1"})
	_, err := h.Candidates(t.Context(), upgrade.CandidateRequest{Security: true})
	assertReason(t, err, upgrade.ReasonSourceUnknown)

	r.advise("security openssl 3.0.16 1", "bugfix openssl 3.0.17 1", "bugfix curl 2 1", "security bash 6 1", "security runc 2 1", "security absent 2 1", "security openssl 3.0.13 1")
	assert.Equal(t, []string{"bash 5-1 6-1", "openssl 3.0.14-1 3.0.16-1"}, h.updates("runc"), "what is only a bug fix, not installed, or has a field of its own is left alone")
	require.NoError(t, h.SetHold(t.Context(), []string{"bash"}, true))
	assert.Equal(t, []string{"bash 5-1 6-1 held", "openssl 3.0.14-1 3.0.16-1"}, h.updates("runc"), "a hold is respected, and told of")
}

func TestWhatAnAdvisoryNamesIsStagedAndInstalled(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, rpmfile{name: "openssl", version: "3.0.16-1"})
	h.configure(r.uri("v1.37"), "")
	h.installs(rpmfile{name: "openssl", version: "3.0.14-1"})
	r.advise("security openssl 3.0.16 1")
	found, err := h.Candidates(t.Context(), upgrade.CandidateRequest{Security: true})
	require.NoError(t, err)
	require.Len(t, found, 1)
	c := change(found[0], found[0].From)
	_, err = h.Stage(t.Context(), []upgrade.PackageChange{c})
	require.NoError(t, err)
	require.NoError(t, h.Install(t.Context(), []upgrade.PackageChange{c}, h.StageDir()))
	assert.Equal(t, []string{"openssl 3.0.16-1 installed"}, h.versions("openssl"))
	assert.Empty(t, h.updates())
}

func FuzzAdvisories(f *testing.F) {
	f.Add(`<updates><update type="security"><pkglist><collection><package name="a" epoch="1" version="2" release="3" arch="noarch"/></collection></pkglist></update></updates>`)
	f.Add(`<updates><update type="Security"/><update`)
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "updateinfo.xml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		newest, err := newerIn(path, map[string]string{"a": "1-1"})
		if err != nil {
			require.ErrorContains(t, err, "updateinfo.xml")
			return
		}
		for name, version := range newest {
			require.Equal(t, "a", name)
			require.Positive(t, upgrade.CompareRPM(version, "1-1"))
		}
	})
}
