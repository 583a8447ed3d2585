package apt

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func request(uri string) upgrade.CandidateRequest {
	return upgrade.CandidateRequest{
		Sources:  []upgrade.CandidateSource{{Name: "kubernetes", URI: uri, SignedBy: "kubernetes"}},
		Packages: []string{"kubelet"},
	}
}

func TestARepositoryThatIsGoneIsNotTriedForever(t *testing.T) {
	h := newHost(t)
	h.trust("kubernetes")
	r := newRepository(t, deb{name: "kubelet", version: "1"})
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound} {
		r.Answer(status)
		_, err := h.Candidates(t.Context(), request(r.uri()))
		assert.True(t, assertReason(t, err, "RepoUnavailable").Terminal)
	}
}

func TestARepositoryThatIsAwayMayComeBack(t *testing.T) {
	h := newHost(t)
	h.trust("kubernetes")
	r := newRepository(t, deb{name: "kubelet", version: "1"})
	r.Answer(http.StatusServiceUnavailable)
	_, err := h.Candidates(t.Context(), request(r.uri()))
	assert.False(t, assertReason(t, err, "RepoUnreachable").Terminal)

	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	_, err = h.Candidates(t.Context(), request(closed.URL+"/deb/"))
	assert.False(t, assertReason(t, err, "RepoUnreachable").Terminal)
}

func TestARepositoryWithoutARightSignatureIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, h *host, r *repository){
		"signed by somebody else": func(t *testing.T, h *host, _ *repository) {
			// A key that is right in form and is not the repository's.
			home, err := os.MkdirTemp("", "refit-gpg")
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(home) })
			run := func(args ...string) string {
				argv := append([]string{"gpg", "--homedir", home, "--batch", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)
				result, err := command.Exec{}.Run(t.Context(), cmd(argv...))
				require.NoError(t, err)
				return result.Stdout
			}
			run("--quick-generate-key", "other", "ed25519", "sign", "never")
			require.NoError(t, os.WriteFile(h.path("etc/apt/keyrings/kubernetes.asc"), []byte(run("--armor", "--export", "other")), 0o644))
		},
		"not signed": func(t *testing.T, _ *host, r *repository) {
			r.write("Release", "Origin: test\n")
			require.NoError(t, os.Remove(filepath.Join(r.dir, "InRelease")))
		},
		"changed after it was signed": func(t *testing.T, _ *host, r *repository) {
			path := filepath.Join(r.dir, "InRelease")
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			data[100] ^= 1
			r.write("InRelease", string(data))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.trust("kubernetes")
			r := newRepository(t, deb{name: "kubelet", version: "1"})
			spoil(t, h, r)
			_, err := h.Candidates(t.Context(), request(r.uri()))
			assert.True(t, assertReason(t, err, "RepoSignature").Terminal)
		})
	}
}

func TestAnIndexThatDoesNotMatchItsSignatureIsNotUsed(t *testing.T) {
	h := newHost(t)
	h.trust("kubernetes")
	r := newRepository(t, deb{name: "kubelet", version: "1"})
	r.write("Packages", "Package: kubelet\nVersion: 9\nArchitecture: all\nFilename: x\nSize: 1\nSHA256: "+sum(nil)+"\n")
	_, err := h.Candidates(t.Context(), request(r.uri()))
	require.Error(t, err)
}

func TestAKeyringMustBeOnTheHost(t *testing.T) {
	h := newHost(t)
	_, err := h.Candidates(t.Context(), request("https://packages.example.com/deb/"))
	assertReason(t, err, "KeyringMissing")
	h.trust("kubernetes")
	for _, signedBy := range []string{"../../etc/passwd", "a b", "-x"} {
		_, err := h.keyring(signedBy)
		require.Error(t, err, signedBy)
	}
	path, err := h.keyring("/etc/apt/keyrings/kubernetes.asc")
	require.NoError(t, err)
	assert.FileExists(t, path)
}

func TestASourceThatAptWouldReadOtherwiseIsRefused(t *testing.T) {
	h := newHost(t)
	h.trust("kubernetes")
	for name, source := range map[string]upgrade.CandidateSource{
		"a line end in the URI":    {URI: "https://x.example.com/\nTrusted: yes"},
		"a scheme that runs":       {URI: "copy:/etc/"},
		"no host":                  {URI: "https:///deb/"},
		"a line end in the suite":  {URI: "https://x.example.com/", Suites: []string{"/\nTrusted: yes"}},
		"an option as a component": {URI: "https://x.example.com/", Components: []string{"[trusted=yes]"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.sourceText(source)
			assertReason(t, err, "SourceInvalid")
		})
	}
}

func TestNothingIsTrustedWithoutAKey(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, deb{name: "kubelet", version: "1"})
	without := request(r.uri())
	without.Sources[0].SignedBy = ""
	_, err := h.Candidates(t.Context(), without)
	assertReason(t, err, "RepoSignature")
	_, err = os.Stat(h.path("etc/apt/trusted.gpg"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
