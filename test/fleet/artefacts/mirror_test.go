package artefacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// releaseSite serves v1.37.2 like the public release site does.
type releaseSite map[string]string

func newReleaseSite() releaseSite {
	site := releaseSite{}
	for _, name := range kubernetesCommands {
		path := "/mirror/release/v1.37.2/bin/linux/" + runtime.GOARCH + "/" + name
		sum := sha256.Sum256([]byte("binary " + name))
		site[path], site[path+".sha256"] = "binary "+name, hex.EncodeToString(sum[:])
	}
	return site
}

func (s releaseSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, found := s[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(content))
}

func fetchFrom(t *testing.T, site releaseSite) (workplace, error) {
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	w := workplace{dir: t.TempDir(), note: func(string) {}}
	return w, mirror{base: server.URL + "/mirror/"}.fetchRelease(context.Background(), w, "v1.37.2")
}

func TestAReleaseIsFetchedFromTheMirror(t *testing.T) {
	w, err := fetchFrom(t, newReleaseSite())
	require.NoError(t, err)
	for _, name := range kubernetesCommands {
		path := filepath.Join(w.dir, "bin", name)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "binary "+name, string(content))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	}
}

func TestAMirrorThatServesOtherBytesIsAnErrorThatNamesThem(t *testing.T) {
	site := newReleaseSite()
	path := "/mirror/release/v1.37.2/bin/linux/" + runtime.GOARCH + "/kubelet"
	want := site[path+".sha256"]
	site[path] = "tampered with"
	got := sha256.Sum256([]byte("tampered with"))

	_, err := fetchFrom(t, site)

	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, want)
	require.ErrorContains(t, err, hex.EncodeToString(got[:]))
	assert.False(t, isUnavailable(err), "wrong bytes must not lead to building instead")
}

func TestAMirrorWithoutTheReleaseIsUnavailable(t *testing.T) {
	_, err := fetchFrom(t, releaseSite{})
	require.ErrorContains(t, err, "404")
	assert.True(t, isUnavailable(err))
}

func TestAMirrorThatCannotBeReachedIsUnavailable(t *testing.T) {
	server := httptest.NewServer(releaseSite{})
	server.Close()
	w := workplace{dir: t.TempDir(), note: func(string) {}}
	err := mirror{base: server.URL}.fetchRelease(context.Background(), w, "v1.37.2")
	require.Error(t, err)
	assert.True(t, isUnavailable(err))
}

func TestEnsureStopsAtAMirrorThatServesOtherBytes(t *testing.T) {
	site := newReleaseSite()
	for path := range site {
		if !strings.HasSuffix(path, ".sha256") {
			site[path] = "tampered with"
		}
	}
	server := httptest.NewServer(site)
	defer server.Close()
	m, err := newMaker(Config{CacheDir: t.TempDir(), Kubernetes: []string{"v1.37.2"}, Mirror: server.URL + "/mirror"})
	require.NoError(t, err)
	items, err := m.kubernetesItems()
	require.NoError(t, err)

	err = m.ensure(context.Background(), items[0])

	require.ErrorContains(t, err, "its SHA-256 is")
	assert.False(t, m.cache.has(kubernetesEntry("v1.37.2")))
}
