package apt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// host is a throw-away root with a real dpkg database; apt and dpkg are the real ones.
type host struct {
	*Apt
	t *testing.T
}

func newHost(t *testing.T) *host {
	t.Helper()
	for _, program := range []string{"apt-get", "dpkg-deb", "gpg"} {
		if command.Find(program) == "" {
			t.Skip("needs a Debian-family machine with apt, dpkg-deb and gpg; missing: " + program)
		}
	}
	root := t.TempDir()
	for _, dir := range []string{
		"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/lib/apt/lists/partial",
		"var/cache/apt/archives/partial", "var/log/apt", "etc/apt/sources.list.d", "etc/apt/keyrings",
		"etc/apt/apt.conf.d", "etc/apt/preferences.d", "usr/sbin",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, file := range []string{"var/lib/dpkg/status", "var/lib/dpkg/available"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), nil, 0o644))
	}
	a := New(root)
	a.LockTimeout = 2 * time.Second
	// Scripts run outside of the root, which has no shell; they find it in DPKG_ROOT.
	a.DpkgOptions = []string{"--force-script-chrootless"}
	return &host{Apt: a, t: t}
}

// deb is a package to be built.
type deb struct {
	name, version string
	depends       string
	files         map[string]string // path to content
	conffiles     []string
	scripts       map[string]string
}

// build makes the .deb and returns its path.
func (d deb) build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: Refit <refit@example.com>\nInstalled-Size: 4\nDescription: test\n", d.name, d.version)
	if d.depends != "" {
		control += "Depends: " + d.depends + "\n"
	}
	write := func(path, content string, mode os.FileMode) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(content), mode))
	}
	write("DEBIAN/control", control, 0o644)
	for path, content := range d.files {
		write(path, content, 0o644)
	}
	for name, content := range d.scripts {
		write("DEBIAN/"+name, content, 0o755)
	}
	if len(d.conffiles) > 0 {
		write("DEBIAN/conffiles", strings.Join(d.conffiles, "\n")+"\n", 0o644)
	}
	out := filepath.Join(t.TempDir(), d.name+"_"+strings.ReplaceAll(d.version, ":", "%3a")+"_all.deb")
	_, err := command.Exec{}.Run(t.Context(), command.Command{Argv: []string{"dpkg-deb", "--root-owner-group", "-b", dir, out}})
	require.NoError(t, err)
	return out
}

// repository is a signed flat repository on loopback, laid out as the public one of Kubernetes.
type repository struct {
	t       *testing.T
	dir     string
	server  *httptest.Server
	mu      sync.Mutex
	status  int // answered to everything, when set
	fetched []string
	label   string // of its Release
	// published moves on with every publication.
	published time.Duration
}

var (
	gpgOnce sync.Once
	gpgHome string
	gpgErr  error
)

// signer makes one throw-away key for all tests; gpg's agent dies with its home.
func signer(t *testing.T) string {
	t.Helper()
	gpgOnce.Do(func() {
		if gpgHome, gpgErr = os.MkdirTemp("", "refit-gpg"); gpgErr != nil {
			return
		}
		_, gpgErr = gpg(t, "--quick-generate-key", "refit-test", "ed25519", "sign", "never")
	})
	require.NoError(t, gpgErr)
	return gpgHome
}

func gpg(t *testing.T, args ...string) (string, error) {
	argv := append([]string{"gpg", "--homedir", gpgHome, "--batch", "--yes", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)
	result, err := command.Exec{}.Run(t.Context(), command.Command{Argv: argv})
	return result.Stdout, err
}

func TestMain(m *testing.M) {
	code := m.Run()
	if gpgHome != "" {
		_, _ = command.Exec{}.Run(context.Background(), command.Command{Argv: []string{"gpgconf", "--homedir", gpgHome, "--kill", "all"}})
		_ = os.RemoveAll(gpgHome)
	}
	os.Exit(code)
}

func newRepository(t *testing.T, debs ...deb) *repository {
	t.Helper()
	r := &repository{t: t, dir: t.TempDir()}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.server.Close)
	r.publish(debs...)
	return r
}

func (r *repository) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	status := r.status
	r.fetched = append(r.fetched, req.URL.Path)
	r.mu.Unlock()
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	http.StripPrefix("/deb", http.FileServer(http.Dir(r.dir))).ServeHTTP(w, req)
}

func (r *repository) uri() string { return r.server.URL + "/deb/" }

func (r *repository) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// publish writes Packages and a signed InRelease over what was there.
func (r *repository) publish(debs ...deb) {
	r.t.Helper()
	signer(r.t)
	var packages strings.Builder
	for _, d := range debs {
		path := d.build(r.t)
		data, err := os.ReadFile(path)
		require.NoError(r.t, err)
		name := "all/" + filepath.Base(path)
		require.NoError(r.t, os.MkdirAll(filepath.Join(r.dir, "all"), 0o755))
		require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), data, 0o644))
		sum := sha256.Sum256(data)
		fmt.Fprintf(&packages, "Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: x <x@example.com>\nInstalled-Size: 4\nFilename: %s\nSize: %d\nSHA256: %s\nDescription: test\n", d.name, d.version, name, len(data), hex.EncodeToString(sum[:]))
		if d.depends != "" {
			fmt.Fprintf(&packages, "Depends: %s\n", d.depends)
		}
		packages.WriteString("\n")
	}
	r.write("Packages", packages.String())
	r.sign(packages.String())
}

func (r *repository) sign(packages string) {
	sum := sha256.Sum256([]byte(packages))
	release := fmt.Sprintf("Origin: test\nLabel: "+r.label+"\nDate: %s\nArchitectures: amd64 arm64 all\nSHA256:\n %s %d Packages\n",
		time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 MST"), hex.EncodeToString(sum[:]), len(packages))
	plain := filepath.Join(r.t.TempDir(), "Release")
	require.NoError(r.t, os.WriteFile(plain, []byte(release), 0o644))
	_, err := gpg(r.t, "--clearsign", "-o", filepath.Join(r.dir, "InRelease"), plain)
	require.NoError(r.t, err)
	// Servers tell time in seconds; two publications within one must not look like the same.
	r.published += time.Minute
	stamp := time.Now().Add(r.published - time.Hour)
	require.NoError(r.t, os.Chtimes(filepath.Join(r.dir, "InRelease"), stamp, stamp))
}

func (r *repository) write(name, content string) {
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644))
}

// trust puts the repository's key on the host under a name.
func (h *host) trust(name string) {
	h.t.Helper()
	signer(h.t)
	key, err := gpg(h.t, "--armor", "--export", "refit-test")
	require.NoError(h.t, err)
	require.NoError(h.t, os.WriteFile(h.path("etc/apt/keyrings", name+".asc"), []byte(key), 0o644))
}

// candidates asks a repository for all versions of some packages.
func (h *host) candidates(r *repository, names ...string) map[string]upgrade.Candidate {
	h.t.Helper()
	h.trust("kubernetes")
	found, err := h.Candidates(h.t.Context(), upgrade.CandidateRequest{
		Sources:  []upgrade.CandidateSource{{Name: "kubernetes", URI: r.uri(), Suites: []string{"/"}, SignedBy: "kubernetes"}},
		Packages: names,
	})
	require.NoError(h.t, err)
	byVersion := map[string]upgrade.Candidate{}
	for _, c := range found {
		byVersion[c.Name+" "+c.Version] = c
	}
	return byVersion
}

// change turns a candidate into what a plan would say.
func change(c upgrade.Candidate, from string) upgrade.PackageChange {
	return upgrade.PackageChange{
		Name: c.Name, From: from, To: c.Version, File: c.SHA256 + ".deb", SHA256: c.SHA256, Size: c.Size,
		URI: c.URI(),
	}
}

// installed brings the host to a state by dpkg itself.
func (h *host) installed(debs ...deb) {
	h.t.Helper()
	argv := h.dpkg("-i")
	for _, d := range debs {
		argv = append(argv, d.build(h.t))
	}
	_, err := command.Exec{}.Run(h.t.Context(), command.Command{Argv: argv})
	require.NoError(h.t, err)
}

// versions is what dpkg says is installed, as "name version state".
func (h *host) versions(names ...string) []string {
	h.t.Helper()
	found, err := h.Query(h.t.Context(), names)
	require.NoError(h.t, err)
	var texts []string
	for _, p := range found {
		texts = append(texts, p.Name+" "+p.Version+" "+p.State)
	}
	sort.Strings(texts)
	return texts
}

func (h *host) read(path string) string {
	h.t.Helper()
	data, err := os.ReadFile(h.path(path))
	require.NoError(h.t, err)
	return string(data)
}
