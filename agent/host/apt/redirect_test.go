package apt

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// apt follows redirects itself: not to a file of this host, and not with what is meant for the mirror.
func TestAptFollowsARedirectToNoFileAndTellsNoSecret(t *testing.T) {
	h := newHost(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("root only"), 0o644))
	digest := strings.Repeat("0", 64)
	var mu sync.Mutex // for what the servers' own goroutines see
	seen, target := map[string]string{}, ""
	saw := func(server, what string) string {
		mu.Lock()
		defer mu.Unlock()
		seen[server] = what
		return target
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		saw("other", req.Header.Get("Authorization")+req.Header.Get("Referer"))
		_, _ = w.Write([]byte("x"))
	}))
	defer other.Close()
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, saw("mirror", req.Header.Get("Authorization")), http.StatusFound)
	}))
	defer mirror.Close()
	require.NoError(t, os.WriteFile(filepath.Join(h.Root, "etc/apt/auth.conf"), []byte("machine "+mirror.URL+" login me password secret\n"), 0o600))
	download := func(name, to string) (string, error) {
		mu.Lock()
		target = to
		mu.Unlock()
		file := filepath.Join(t.TempDir(), name)
		err := h.download(t.Context(), mirror.URL+"/x.deb", digest, file)
		text, _ := os.ReadFile(file)
		return string(text), err
	}

	text, err := download("file.deb", "file://"+secret)
	require.Error(t, err)
	assert.NotContains(t, text+err.Error(), "root only")

	_, err = download("other.deb", other.URL+"/y.deb")
	require.Error(t, err, "its digest is not right")
	mu.Lock()
	defer mu.Unlock()
	assert.NotEmpty(t, seen["mirror"], "the mirror has been told")
	require.Contains(t, seen, "other", "the redirect is followed")
	assert.Empty(t, seen["other"], "the other server has not")
}

func TestASourceIsNotSwitchedToMoreThanOneWord(t *testing.T) {
	h := newHost(t)
	file := filepath.Join(h.Root, "etc/apt/sources.list.d/a.list")
	require.NoError(t, os.WriteFile(file, []byte("deb http://m/ ./\n"), 0o644))
	for _, to := range []string{"http://m/ evil", "http://m/\nTrusted: yes", "http://m/\tx", "http://m/\x00"} {
		err := h.Switch(t.Context(), upgrade.SourceChange{Name: "a", File: "/etc/apt/sources.list.d/a.list", From: "http://m/", To: to})
		require.ErrorContains(t, err, "SourceInvalid", to)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "deb http://m/ ./\n", string(text))
}
