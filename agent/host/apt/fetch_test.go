package apt

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func answering(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// hangUp ends the connection in the middle of an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000000")
	_, _ = w.Write([]byte("-----BEGIN PGP SIGNED MESSAGE-----\n"))
	panic(http.ErrAbortHandler)
}

func page(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("<html><body>Please log in to this network</body></html>"))
}

// B16, B18: what goes wrong with an index is told by its own reason, as the real apt finds it at a real server.
func TestEachFailureOfAnIndexHasItsReason(t *testing.T) {
	kubelet := deb{name: "kubelet", version: "1"}
	for name, tc := range map[string]struct {
		spoil    func(r *repository)
		reason   string
		terminal bool
	}{
		"401":               {func(r *repository) { r.Answer(http.StatusUnauthorized) }, "RepoUnavailable", true},
		"403":               {func(r *repository) { r.Answer(http.StatusForbidden) }, "RepoUnavailable", true},
		"404":               {func(r *repository) { r.Answer(http.StatusNotFound) }, "RepoUnavailable", true},
		"410":               {func(r *repository) { r.Answer(http.StatusGone) }, "RepoUnavailable", true},
		"404 of the index":  {func(r *repository) { r.AnswerFor("Packages", answering(http.StatusNotFound)) }, "RepoUnavailable", true},
		"429":               {func(r *repository) { r.Answer(http.StatusTooManyRequests) }, "RepoUnreachable", false},
		"500":               {func(r *repository) { r.Answer(http.StatusInternalServerError) }, "RepoUnreachable", false},
		"503":               {func(r *repository) { r.Answer(http.StatusServiceUnavailable) }, "RepoUnreachable", false},
		"503 of the index":  {func(r *repository) { r.AnswerFor("Packages", answering(http.StatusServiceUnavailable)) }, "RepoUnreachable", false},
		"cut off":           {func(r *repository) { r.AnswerFor("InRelease", hangUp) }, "RepoUnreachable", false},
		"nobody listens":    {func(r *repository) { r.Close() }, "RepoUnreachable", false},
		"a page to log in":  {func(r *repository) { r.AnswerFor("Release", page) }, "RepoUnreachable", false},
		"stale":             {func(r *repository) { r.dated, r.validUntil = daysAgo(20), daysAgo(10); r.publish(kubelet) }, "RepoExpired", false},
		"of tomorrow":       {func(r *repository) { r.dated = daysAgo(-1); r.publish(kubelet) }, "RepoExpired", false},
		"signed by another": {func(r *repository) { r.signer = "refit-other"; r.publish(kubelet) }, "RepoSignature", true},
		"changed since it was signed": {func(r *repository) {
			data, err := os.ReadFile(filepath.Join(r.dir, "InRelease"))
			require.NoError(t, err)
			r.write("InRelease", strings.Replace(string(data), "Origin: test", "Origin: tess", 1))
		}, "RepoSignature", true},
		"not signed": {func(r *repository) {
			r.write("Release", "Origin: test\n")
			require.NoError(t, os.Remove(filepath.Join(r.dir, "InRelease")))
		}, "RepoSignature", true},
		"another digest": {func(r *repository) {
			data, err := os.ReadFile(filepath.Join(r.dir, "Packages"))
			require.NoError(t, err)
			r.write("Packages", strings.Replace(string(data), "Version: 1", "Version: 2", 1))
		}, "DigestMismatch", false},
		"another size": {func(r *repository) { r.write("Packages", "Package: kubelet\nVersion: 9\n") }, "DigestMismatch", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.trust("kubernetes")
			r := newRepository(t, kubelet)
			tc.spoil(r)
			_, err := h.Candidates(t.Context(), request(r.uri()))
			blocked := assertReason(t, err, tc.reason)
			assert.Equal(t, tc.terminal, blocked.Terminal, blocked.Message)
		})
	}
}

func daysAgo(days int) time.Time { return time.Now().AddDate(0, 0, -days) }

// The same of a package, whose index is right.
func TestEachFailureOfAPackageHasItsReason(t *testing.T) {
	for name, tc := range map[string]struct {
		answer   http.HandlerFunc
		reason   string
		terminal bool
	}{
		"403":            {answering(http.StatusForbidden), "RepoUnavailable", true},
		"404":            {answering(http.StatusNotFound), "RepoUnavailable", true},
		"429":            {answering(http.StatusTooManyRequests), "RepoUnreachable", false},
		"503":            {answering(http.StatusServiceUnavailable), "RepoUnreachable", false},
		"cut off":        {hangUp, "RepoUnreachable", false},
		"another digest": {page, "DigestMismatch", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			r := newRepository(t, deb{name: "kubelet", version: "1"})
			changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 1"], "")}
			r.AnswerFor(".deb", tc.answer)
			_, err := h.Stage(t.Context(), changes)
			blocked := assertReason(t, err, tc.reason)
			assert.Equal(t, tc.terminal, blocked.Terminal, blocked.Message)
			assert.NoFileExists(t, filepath.Join(h.StageDir(), changes[0].File))
		})
	}
}

// A key that ran out is said as what it is, before anything is drained.
func TestAKeyThatHasExpiredIsARefusal(t *testing.T) {
	h := newHost(t)
	keys.GPG(t, "--quick-generate-key", "refit-short", "ed25519", "sign", "seconds=2")
	r := newRepository(t)
	r.signer = "refit-short"
	r.publish(deb{name: "kubelet", version: "1"})
	require.NoError(t, os.WriteFile(h.path("etc/apt/keyrings/kubernetes.asc"), []byte(keys.Public(t, "refit-short")), 0o644))
	require.Eventually(t, func() bool {
		_, err := h.Candidates(t.Context(), request(r.uri()))
		return err != nil
	}, time.Minute, 500*time.Millisecond)
	_, err := h.Candidates(t.Context(), request(r.uri()))
	assert.True(t, assertReason(t, err, "RepoSignature").Terminal)
}

// apt's own retries are off, whatever the host's configuration says: Refit tries again itself, from the beginning.
func TestAptTriesNothingAgainByItself(t *testing.T) {
	h := newHost(t)
	require.NoError(t, os.WriteFile(h.path("etc/apt/apt.conf.d/99retries"), []byte("Acquire::Retries \"5\";\nAcquire::Retries::Delay \"false\";\n"), 0o644))
	r := newRepository(t, deb{name: "kubelet", version: "1"})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 1"], "")}
	times := func(part string) int {
		count := 0
		for _, path := range r.Fetched() {
			if strings.HasSuffix(path, part) {
				count++
			}
		}
		return count
	}
	r.AnswerFor(".deb", hangUp) // what apt takes for passing
	_, err := h.Stage(t.Context(), changes)
	assertReason(t, err, "RepoUnreachable")
	assert.LessOrEqual(t, times(".deb"), 2, "a connection that breaks is begun anew once by whoever speaks HTTP; five retries ask twelve times")

	before := times("InRelease")
	r.AnswerFor("InRelease", hangUp)
	_, err = h.Candidates(t.Context(), request(r.uri()))
	assertReason(t, err, "RepoUnreachable")
	assert.LessOrEqual(t, times("InRelease"), before+2)

	for _, argv := range [][]string{h.apt("apt-get", "install"), h.apt(aptHelper)} {
		assert.Contains(t, argv, "Acquire::Retries=0", "every run of apt has it")
	}
}

// trickedApt runs the real programs, and an apt that was deceived: what it says it has verified is another file.
type trickedApt struct {
	command.Runner
	content []byte
}

func (r trickedApt) Run(ctx context.Context, c command.Command) (command.Result, error) {
	result, err := r.Runner.Run(ctx, c)
	for i, arg := range c.Argv {
		if arg == "download-file" && err == nil {
			err = os.WriteFile(c.Argv[i+2], r.content, 0o600)
		}
	}
	return result, err
}

// apt's word is not taken for what it has fetched: each file is compared with the signed index's digest again.
func TestAFileThatAptWasDeceivedWithIsNotUsed(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, deb{name: "kubelet", version: "1"})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 1"], "")}
	evil, err := os.ReadFile(deb{name: "kubelet", version: "1", files: map[string]string{"usr/bin/kubelet": "evil"}}.build(t))
	require.NoError(t, err)
	honest := h.Runner
	h.Runner = trickedApt{honest, evil}
	_, err = h.Stage(t.Context(), changes)
	assert.False(t, assertReason(t, err, "DigestMismatch").Terminal, "another mirror, or the same one later, may have it")
	assert.NoFileExists(t, filepath.Join(h.StageDir(), changes[0].File))

	h.Runner = honest
	_, err = h.Stage(t.Context(), changes)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(h.StageDir(), changes[0].File), evil, 0o644), "nor what was put there after it was staged")
	assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "DigestMismatch")
	assert.Empty(t, h.versions("kubelet"))
}
