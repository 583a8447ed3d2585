package rpm

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A mirror that is hostile redirects: to a file of this host, and to a server that is to
// learn what was meant for the mirror.
func TestARedirectLeadsToNoFileAndTellsNoSecret(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("root only"), 0o600))
	var got http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { got = req.Header.Clone() }))
	defer other.Close()
	target := ""
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, target, http.StatusFound) }))
	defer mirror.Close()
	r := New(t.TempDir())

	target = "file://" + secret
	_, err := r.read(t.Context(), access{}, mirror.URL+"/repodata/repomd.xml", maxRepomd)
	assert.NotContains(t, assertReason(t, err, "RepoUnreachable").Message, "root only")

	target = other.URL + "/x"
	_, err = r.read(t.Context(), access{query: "token=secret"}, mirror.URL+"/repodata/repomd.xml", maxRepomd)
	require.NoError(t, err)
	require.NotNil(t, got)
	assert.Empty(t, got.Get("Referer"), "the token is in it")
	assert.Empty(t, got.Get("Authorization"))
}

func TestCredentialsStayOnTheConnectionTheyAreFor(t *testing.T) {
	with := access{values: section{values: map[string]string{"username": "me"}}}
	for name, tc := range map[string]struct {
		access   access
		from, to string
		followed bool
	}{
		"the same server":                   {with, "https://m/a", "https://m/b", true},
		"a better connection":               {with, "http://m/a", "https://m/a", true},
		"another server":                    {with, "https://m/a", "https://evil/a", false},
		"another port":                      {with, "https://m/a", "https://m:8443/a", false},
		"a server below":                    {with, "https://m/a", "https://x.m/a", false},
		"in the clear":                      {with, "https://m/a", "http://m/a", false},
		"with a name in the URI":            {access{}, "https://u:p@m/a", "http://m/a", false},
		"a client certificate":              {access{values: section{values: map[string]string{"sslclientcert": "/c"}}}, "https://m/a", "https://evil/a", false},
		"nothing to tell":                   {access{}, "https://m/a", "https://other/a", true},
		"the credentials of dnf's own file": {access{main: section{values: map[string]string{"username": "me"}}}, "https://m/a", "https://evil/a", false},
	} {
		first, err := http.NewRequest(http.MethodGet, tc.from, http.NoBody)
		require.NoError(t, err)
		next, err := http.NewRequest(http.MethodGet, tc.to, http.NoBody)
		require.NoError(t, err)
		assert.Equal(t, tc.followed, tc.access.redirect(next, []*http.Request{first}) == nil, name)
	}
}

func TestADownloadIsNotWrittenThroughALink(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("evil")) }))
	defer server.Close()
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(victim, filepath.Join(dir, "x.rpm")))
	require.Error(t, New(dir).download(t.Context(), access{}, server.URL, filepath.Join(dir, "x.rpm")))
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
}
