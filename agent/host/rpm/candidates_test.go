package rpm

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// B15: what an exclude= or a version lock hides from dnf is seen, and the files stay as they are.
func TestWhatDnfDoesNotSeeIsACandidateAllTheSame(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	h.installs(kubelet("1.36.3-1"))
	h.configure(r.uri("v1.37"), "exclude=kube*\n")
	h.write(lockListFile, "kubelet-0:1.36.3-1.*\n")
	before := h.read(reposDir + "/kubernetes.repo")
	c := h.candidates(r, "kubelet")["kubelet 1.37.2-1"]
	require.NotEmpty(t, c.SHA256)
	holds, err := h.Holds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"kubelet"}, holds)
	changes := []upgrade.PackageChange{change(c, "1.36.3-1")}
	_, err = h.Stage(t.Context(), changes)
	require.NoError(t, err)
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, before, h.read(reposDir+"/kubernetes.repo"))
	assert.Equal(t, "kubelet-0:1.36.3-1.*\n", h.read(lockListFile))
}

func TestRequirementsAreToldAsThePlannerReadsThem(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, rpmfile{name: "kubelet", version: "1.37.2-1", requires: "kubernetes-cni >= 1.2.0, conntrack"})
	assert.ElementsMatch(t, []string{"kubernetes-cni (>= 1.2.0)", "conntrack"}, h.candidates(r, "kubelet")["kubelet 1.37.2-1"].Depends)
}

// B17: a repository that is not there is not asked again until something changes; one that is away is.
func TestWhatAServerAnswersDecidesWhetherItIsAskedAgain(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	for status, want := range map[int]struct {
		reason   string
		terminal bool
	}{
		http.StatusForbidden:           {"RepoUnavailable", true},
		http.StatusNotFound:            {"RepoUnavailable", true},
		http.StatusUnauthorized:        {"RepoUnavailable", true},
		http.StatusInternalServerError: {"RepoUnreachable", false},
		http.StatusTooManyRequests:     {"RepoUnreachable", false},
	} {
		r.Answer(status)
		_, err := h.Candidates(t.Context(), h.request(r, "kubelet"))
		assert.Equal(t, want.terminal, assertReason(t, err, want.reason).Terminal, status)
	}
	r.Close()
	_, err := h.Candidates(t.Context(), h.request(r, "kubelet"))
	assert.False(t, assertReason(t, err, "RepoUnreachable").Terminal)
}

// B18: a signature that does not hold is said before anything is drained, and never passed over.
func TestMetadataThatIsNotSignedByItsSourceIsRefused(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	repomd := r.path("v1.37", "repodata/repomd.xml")
	for name, breakIt := range map[string]func(){
		"by another key": func() { r.sign("v1.37", "refit-other") },
		"changed since":  func() { appendTo(t, repomd, "<!-- x -->") },
		"not at all":     func() { require.NoError(t, os.Remove(repomd+".asc")) },
		"garbage":        func() { require.NoError(t, os.WriteFile(repomd+".asc", []byte("garbage"), 0o644)) },
	} {
		t.Run(name, func(t *testing.T) {
			r.publish("v1.37", kubelet("1.37.2-1"))
			breakIt()
			_, err := h.Candidates(t.Context(), h.request(r, "kubelet"))
			assert.True(t, assertReason(t, err, "RepoSignature").Terminal)
		})
	}
	r.publish("v1.37", kubelet("1.37.2-1"))
	request := h.request(r, "kubelet")
	request.Sources[0].SignedBy = "nowhere"
	_, err := h.Candidates(t.Context(), request)
	assertReason(t, err, "KeyringMissing")
}

// A host may choose metadata without a signature, as most distributions have it; packages are signed or not used.
func TestAHostMayHaveUnsignedMetadataButNoUnsignedPackages(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"), rpmfile{name: "kubeadm", version: "1.37.2-1", unsigned: true})
	require.NoError(t, os.Remove(r.path("v1.37", "repodata/repomd.xml.asc")))
	h.configure(r.uri("v1.37"), "")
	found := h.candidates(r, "kubelet", "kubeadm")
	_, err := h.Stage(t.Context(), []upgrade.PackageChange{change(found["kubelet 1.37.2-1"], "")})
	require.NoError(t, err)
	_, err = h.Stage(t.Context(), []upgrade.PackageChange{change(found["kubeadm 1.37.2-1"], "")})
	assert.True(t, assertReason(t, err, "RepoSignature").Terminal)

	h.configure(r.uri("v1.37"), "repo_gpgcheck=1\n")
	_, err = h.Candidates(t.Context(), h.request(r, "kubelet"))
	assertReason(t, err, "RepoSignature")
	h.configure(r.uri("v1.37"), "gpgcheck=0\n")
	_, err = h.Candidates(t.Context(), h.request(r, "kubelet"))
	assert.Contains(t, assertReason(t, err, "RepoSignature").Message, "gpgcheck=0")
}

// The documented repository of Kubernetes names its key by a URL: the key that was imported counts, none is fetched.
func TestAKeyThatAFileNamesByURLIsTheOneThatRpmTrusts(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	key := h.trust("kubernetes")
	request := h.request(r, "kubelet")
	request.Sources[0].SignedBy = r.URL + "/repomd.xml.key"
	_, err := h.Candidates(t.Context(), request)
	assertReason(t, err, "KeyringMissing")
	tool(t, h.rpm("rpmkeys", "--import", h.path(key))...)
	found, err := h.Candidates(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, found, 1)
	_, err = h.Stage(t.Context(), []upgrade.PackageChange{change(found[0], "")})
	require.NoError(t, err)
	for _, path := range r.Fetched() {
		assert.NotContains(t, path, "repomd.xml.key")
	}
}

func TestAnIndexThatWasSwappedIsNotRead(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	entries, err := os.ReadDir(r.path("v1.37", "repodata"))
	require.NoError(t, err)
	for _, e := range entries {
		if strings.Contains(e.Name(), "primary") {
			appendTo(t, r.path("v1.37", "repodata", e.Name()), "x")
		}
	}
	_, err = h.Candidates(t.Context(), h.request(r, "kubelet"))
	assert.False(t, assertReason(t, err, "DigestMismatch").Terminal, "a mirror in the middle of a sync looks like that")
}

func TestEveryCompressionOfAnIndexIsRead(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	for _, kind := range []string{"gz", "zstd"} {
		tool(t, "createrepo_c", "-q", "--no-database", "--compress-type=gz", r.path("v1.37"))
		if kind == "zstd" { // which createrepo_c of Debian 12 cannot write; newer ones do so by default
			recompress(t, r.path("v1.37"))
		}
		r.sign("v1.37", "refit-test")
		assert.Len(t, h.candidates(r, "kubelet"), 1, kind)
	}
}

// recompress makes the index of a repository one of zstd.
func recompress(t *testing.T, dir string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "repodata", "*-primary.xml.gz"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	f, err := os.Open(found[0])
	require.NoError(t, err)
	defer f.Close()
	plain, err := gzip.NewReader(f)
	require.NoError(t, err)
	target := filepath.Join(dir, "repodata", "primary.xml.zst")
	out, err := os.Create(target)
	require.NoError(t, err)
	w, err := zstd.NewWriter(out)
	require.NoError(t, err)
	_, err = io.Copy(w, plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, out.Close())
	repomd := filepath.Join(dir, "repodata/repomd.xml")
	text, err := os.ReadFile(repomd)
	require.NoError(t, err)
	old, next := strings.TrimSuffix(filepath.Base(found[0]), "-primary.xml.gz"), tool(t, "sha256sum", target)[:64]
	replaced := strings.NewReplacer("repodata/"+filepath.Base(found[0]), "repodata/primary.xml.zst", old, next).Replace(string(text))
	require.NoError(t, os.WriteFile(repomd, []byte(replaced), 0o644))
}

func TestAListOfMirrorsLeadsToOneThatIsThere(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	for name, list := range map[string]string{
		"mirrorlist": "# mirrors\nhttp://127.0.0.1:1/gone/\n" + r.uri("v1.37") + "\n",
		"metalink":   "<metalink><files><file><resources><url protocol=\"http\">" + r.uri("v1.37") + "repodata/repomd.xml</url></resources></file></files></metalink>",
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(list)) }))
			defer server.Close()
			key := h.trust("kubernetes")
			h.write(reposDir+"/base.repo", "[base]\n"+name+"="+server.URL+"/?arch=$basearch\ngpgkey=file://"+key+"\n")
			sources, err := h.Sources(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, sources, 1)
			found, err := h.Candidates(t.Context(), upgrade.CandidateRequest{
				Sources: []upgrade.CandidateSource{{Name: "base", URI: sources[0].URI, SignedBy: sources[0].SignedBy}}, Packages: []string{"kubelet"},
			})
			require.NoError(t, err)
			require.Len(t, found, 1)
			assert.Equal(t, r.uri("v1.37"), found[0].Source)
		})
	}
}

func TestCredentialsGoToTheServerTheyAreForAndToNoOther(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	var mu sync.Mutex
	var users []string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		mu.Lock()
		users = append(users, user+":"+password)
		mu.Unlock()
		http.Redirect(w, req, r.URL+req.URL.Path, http.StatusFound)
	}))
	defer front.Close()
	uri := front.URL + "/v1.37/rpm/"
	request := h.request(r, "kubelet")
	request.Sources[0].URI = uri
	_, err := h.Candidates(t.Context(), request)
	require.NoError(t, err, "without credentials a redirect is followed")
	h.configure(uri, "username=me\npassword=secret\n")
	_, err = h.Candidates(t.Context(), request)
	assert.NotContains(t, assertReason(t, err, "RepoUnreachable").Message, "secret")
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, "me:secret", users[len(users)-1])
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
