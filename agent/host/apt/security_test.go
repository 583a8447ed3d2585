package apt

import (
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// secured is a host whose only source is a security suite with some packages.
func secured(t *testing.T, debs ...deb) (*host, *repository) {
	t.Helper()
	h := newHost(t)
	h.trust("debian")
	r := newRepository(t, debs...)
	require.NoError(t, os.Symlink(".", filepath.Join(r.dir, "bookworm-security")))
	h.source("deb [signed-by=/etc/apt/keyrings/debian.asc] " + r.uri() + " bookworm-security/\n")
	return h, r
}

func (h *host) source(text string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.path("etc/apt/sources.list"), []byte(text), 0o644))
}

// updates are the security updates as "name from version", held ones marked.
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
	sort.Strings(out)
	return out
}

func TestSecurityUpdatesAreWhatIsInstalledAndOlder(t *testing.T) {
	h, _ := secured(t,
		deb{name: "openssl", version: "3.0.16"}, deb{name: "openssl", version: "3.0.15"}, deb{name: "curl", version: "1"},
		deb{name: "not-installed", version: "9"}, deb{name: "runc", version: "1.2"}, deb{name: "bash", version: "6"},
	)
	h.installed(deb{name: "openssl", version: "3.0.14"}, deb{name: "curl", version: "2"}, deb{name: "runc", version: "1.1"}, deb{name: "bash", version: "5"})
	assert.Equal(t, []string{"bash 5 6", "openssl 3.0.14 3.0.16"}, h.updates("runc", "kubelet"), "the newest; nothing new, nothing that has a field of its own")
	require.NoError(t, h.SetHold(t.Context(), []string{"bash"}, true))
	assert.Equal(t, []string{"bash 5 6 held", "openssl 3.0.14 3.0.16"}, h.updates("runc"), "a hold is respected, and told of")
}

// A kernel's meta package needs a package that is not installed yet.
func TestASecurityUpdateBringsWhatItNeedsAndNothingElse(t *testing.T) {
	h, _ := secured(t,
		deb{name: "linux-image-amd64", version: "6.1.31", depends: "linux-image-6.1.0-31-amd64"},
		deb{name: "linux-image-6.1.0-31-amd64", version: "6.1.31"},
		deb{name: "libfoo", version: "2", depends: "from-elsewhere"},
	)
	h.installed(deb{name: "linux-image-amd64", version: "6.1.30"}, deb{name: "libfoo", version: "1"})
	assert.Equal(t, []string{"linux-image-6.1.0-31-amd64  6.1.31", "linux-image-amd64 6.1.30 6.1.31"}, h.updates(),
		"what needs something that the security sources do not have is kept back, as by apt")
}

func TestWhatSecurityUpdatesAreLookedForIsStagedAsItIs(t *testing.T) {
	h, _ := secured(t, deb{name: "openssl", version: "3.0.16"})
	h.installed(deb{name: "openssl", version: "3.0.14"})
	found, err := h.Candidates(t.Context(), upgrade.CandidateRequest{Security: true})
	require.NoError(t, err)
	require.Len(t, found, 1)
	c := change(found[0], found[0].From)
	_, err = h.Stage(t.Context(), []upgrade.PackageChange{c})
	require.NoError(t, err)
	require.NoError(t, h.Install(t.Context(), []upgrade.PackageChange{c}, h.StageDir()))
	assert.Equal(t, []string{"openssl 3.0.16 installed"}, h.versions("openssl"))
	assert.Empty(t, h.updates(), "and then there is none")
}

func TestTheLookLeavesTheHostsOwnListsAlone(t *testing.T) {
	h, _ := secured(t, deb{name: "openssl", version: "3.0.16"})
	h.updates()
	lists, err := filepath.Glob(h.path("var/lib/apt/lists/*Packages*"))
	require.NoError(t, err)
	assert.Empty(t, lists)
}

func TestASourceIsOfSecurityUpdatesByItsLabelToo(t *testing.T) {
	h, r := secured(t, deb{name: "openssl", version: "3.0.16"})
	h.installed(deb{name: "openssl", version: "3.0.14"})
	h.source("deb " + r.uri() + " /\n")
	require.NoError(t, os.MkdirAll(h.path("etc/apt/trusted.gpg.d"), 0o755))
	require.NoError(t, os.Rename(h.path("etc/apt/keyrings/debian.asc"), h.path("etc/apt/trusted.gpg.d/debian.asc")))
	_, err := h.Candidates(t.Context(), upgrade.CandidateRequest{Security: true})
	assertReason(t, err, upgrade.ReasonSourceUnknown)

	r.label = "Debian-Security"
	r.publish(deb{name: "openssl", version: "3.0.16"})
	_, err = command.Exec{}.Run(t.Context(), command.Command{Argv: h.apt("apt-get", "-q", "update")})
	require.NoError(t, err)
	assert.Equal(t, []string{"openssl 3.0.14 3.0.16"}, h.updates())
}

func TestSuitesOfSecurityUpdatesAreKnownByTheirNames(t *testing.T) {
	for suite, want := range map[string]bool{
		"bookworm-security": true, "stable-security": true, "jammy-security": true, "jammy-infra-security": true, "buster/updates": true, "bookworm-security/": true,
		"bookworm": false, "bookworm-updates": false, "jammy-proposed": false, "/": false, "/updates": false, "security-tools": false,
	} {
		assert.Equal(t, want, isSecurity(suite), suite)
	}
}

func TestAnUpgradeThatWouldRemoveIsRefused(t *testing.T) {
	_, err := parseUpgrade("Inst a [1] (2 x [all])\nRemv b [1]\n")
	assertReason(t, err, upgrade.FindingTransactionWouldRemove)
	changes, err := parseUpgrade("Reading state information...\nInst a [1:1~deb12u1] (2 Debian-Security:12/stable-security [amd64])\nInst n (3 x [all])\nConf a (2 x [all])\n")
	require.NoError(t, err)
	assert.Equal(t, []upgrade.PackageChange{{Name: "a", From: "1:1~deb12u1", To: "2"}, {Name: "n", To: "3"}}, changes)
}

func FuzzUpgrade(f *testing.F) {
	f.Add("Inst a [1] (2 Debian-Security:12/stable-security [amd64]) []\nConf a (2 x [all])\n")
	f.Add("Remv a\nInst")
	f.Add("Inst a [ (] )")
	f.Fuzz(func(t *testing.T, output string) {
		changes, err := parseUpgrade(output)
		if err != nil {
			return
		}
		for _, c := range changes {
			require.NotEmpty(t, c.Name)
			require.NotEmpty(t, c.To)
		}
	})
}
