package rpm

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/hostfake/mirror"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// need skips a test where the real tools are missing; where everything has to run it fails.
func need(t *testing.T, programs ...string) {
	t.Helper()
	var missing []string
	for _, program := range programs {
		if command.Find(program) == "" {
			missing = append(missing, program)
		}
	}
	if os.Geteuid() != 0 {
		missing = append(missing, "root, which rpm needs for an install root")
	}
	if len(missing) == 0 {
		return
	}
	reason := "needs the real tools (on Debian: hack/install-deps); missing: " + strings.Join(missing, ", ")
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// host is a throw-away root with a real rpm database; rpm is the real one.
type host struct {
	*RPM
	t *testing.T
}

func newHost(t *testing.T) *host {
	t.Helper()
	need(t, "rpm", "rpmbuild", "rpmsign", "rpmkeys", "createrepo_c", "gpg")
	root := t.TempDir()
	for _, dir := range []string{"var/lib/rpm", reposDir, keyringDir, "etc/dnf/plugins", "usr/bin"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	r := New(root)
	r.LockTimeout = 2 * time.Second
	// Debian's rpm has its database elsewhere.
	r.Options = []string{"--dbpath=/var/lib/rpm"}
	return &host{RPM: r, t: t}
}

// rpmfile is a package to be built.
type rpmfile struct {
	name, version string // [epoch:]version-release
	requires      string
	obsoletes     string
	files         map[string]string // path to content
	config        map[string]string // the same, %config(noreplace)
	replaced      map[string]string // the same, %config
	// post is Lua: the root has no shell. posix and io are there.
	pre, post, postun string
	unsigned          bool
}

func (f rpmfile) spec(root string) string {
	epoch, rest, ok := strings.Cut(f.version, ":")
	if !ok {
		epoch, rest = "", f.version
	}
	version, release, _ := strings.Cut(rest, "-")
	var b strings.Builder
	fmt.Fprintf(&b, "Name: %s\nVersion: %s\nRelease: %s\nSummary: test\nLicense: test\nBuildArch: noarch\nAutoReqProv: no\n", f.name, version, release)
	for tag, value := range map[string]string{"Epoch": epoch, "Requires": f.requires, "Obsoletes": f.obsoletes} {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", tag, value)
		}
	}
	b.WriteString("%description\ntest\n%install\ncp -a " + root + "/. %{buildroot}/\n")
	for name, script := range map[string]string{"pre": f.pre, "post": f.post, "postun": f.postun} {
		if script != "" {
			fmt.Fprintf(&b, "%%%s -p <lua>\n%s\n", name, script)
		}
	}
	b.WriteString("%files\n")
	for prefix, files := range map[string]map[string]string{"": f.files, "%config(noreplace) ": f.config, "%config ": f.replaced} {
		for path := range files {
			fmt.Fprintf(&b, "%s/%s\n", prefix, path)
		}
	}
	return b.String()
}

// built are the packages that some test has built before.
var built = map[string][]byte{}

// build makes the .rpm, signed unless it should not be, and returns its path.
func (f rpmfile) build(t *testing.T) string {
	t.Helper()
	key := fmt.Sprintf("%+v", f)
	_, rest, _ := strings.Cut(":"+f.version, ":")
	if _, after, ok := strings.Cut(rest, ":"); ok {
		rest = after
	}
	path := filepath.Join(t.TempDir(), f.name+"-"+rest+".noarch.rpm")
	if _, ok := built[key]; !ok {
		data, err := os.ReadFile(f.make(t))
		require.NoError(t, err)
		built[key] = data
	}
	require.NoError(t, os.WriteFile(path, built[key], 0o644))
	return path
}

func (f rpmfile) make(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	require.NoError(t, os.MkdirAll(root, 0o755))
	for _, files := range []map[string]string{f.files, f.config, f.replaced} {
		for path, content := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(content), 0o755))
		}
	}
	spec := filepath.Join(dir, "test.spec")
	require.NoError(t, os.WriteFile(spec, []byte(f.spec(root)), 0o644))
	tool(t, "rpmbuild", "--quiet", "--nodeps", "-bb", "--dbpath="+filepath.Join(dir, "db"), "--buildroot="+filepath.Join(dir, "build"),
		"--define=_topdir "+dir, "--define=_rpmdir "+dir, "--define=_build_id_links none",
		"--define=__spec_install_post %{nil}", spec)
	found, err := filepath.Glob(filepath.Join(dir, "noarch", "*.rpm"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	if !f.unsigned {
		tool(t, "rpmsign", "--dbpath="+filepath.Join(dir, "db"), "--define=__gpg /usr/bin/gpg", "--define=_gpg_name refit-test",
			"--define=_gpg_path "+keys.Home(t), "--addsign", found[0])
	}
	return found[0]
}

func tool(t *testing.T, argv ...string) string {
	t.Helper()
	result, err := command.Exec{}.Run(t.Context(), command.Command{Argv: argv})
	require.NoError(t, err)
	return result.Output()
}

// rpm does not understand every kind of key.
var keys = &mirror.Keys{Algorithm: "rsa2048", Names: []string{"refit-test", "refit-other"}}

func TestMain(m *testing.M) {
	code := m.Run()
	keys.Remove()
	os.Exit(code)
}

// testRepository is a server of signed repositories, one for each minor.
type testRepository struct {
	*mirror.Server
	t *testing.T
}

func newRepository(t *testing.T, packages ...rpmfile) *testRepository {
	t.Helper()
	r := &testRepository{t: t, Server: mirror.Serve(t)}
	r.publish("v1.37", packages...)
	return r
}

func (r *testRepository) uri(minor string) string { return r.URL + "/" + minor + "/rpm/" }

func (r *testRepository) path(minor string, elements ...string) string {
	return filepath.Join(append([]string{r.Dir, minor, "rpm"}, elements...)...)
}

// publish makes the repository of a minor, its metadata signed.
func (r *testRepository) publish(minor string, packages ...rpmfile) {
	r.t.Helper()
	require.NoError(r.t, os.RemoveAll(r.path(minor)))
	require.NoError(r.t, os.MkdirAll(r.path(minor, "noarch"), 0o755))
	for _, f := range packages {
		path := f.build(r.t)
		require.NoError(r.t, os.Rename(path, r.path(minor, "noarch", filepath.Base(path))))
	}
	tool(r.t, "createrepo_c", "-q", "--no-database", r.path(minor))
	r.sign(minor, "refit-test")
}

func (r *testRepository) sign(minor, key string) {
	r.t.Helper()
	repomd := r.path(minor, "repodata/repomd.xml")
	keys.GPG(r.t, "--local-user", key, "--armor", "--detach-sign", "-o", repomd+".asc", repomd)
}

// trust puts the repository's key on the host under a name.
func (h *host) trust(name string) string {
	h.t.Helper()
	file := filepath.Join(keyringDir, name+".asc")
	require.NoError(h.t, os.WriteFile(h.path(file), []byte(keys.Public(h.t, "refit-test")), 0o644))
	return file
}

// configure writes a repository file the way the installation guide of Kubernetes has it.
func (h *host) configure(uri, extra string) {
	h.t.Helper()
	key := h.trust("kubernetes")
	text := "[kubernetes]\nname=Kubernetes\nbaseurl=" + uri + "\nenabled=1\ngpgcheck=1\ngpgkey=file://" + key + "\n" + extra
	require.NoError(h.t, os.WriteFile(h.path(h.dialect.reposDir, "kubernetes.repo"), []byte(text), 0o644))
}

func (h *host) request(r *testRepository, names ...string) upgrade.CandidateRequest {
	h.trust("kubernetes")
	return upgrade.CandidateRequest{
		Sources:  []upgrade.CandidateSource{{Name: "kubernetes", URI: r.uri("v1.37"), SignedBy: "kubernetes"}},
		Packages: names,
	}
}

// candidates asks a repository for all versions of some packages.
func (h *host) candidates(r *testRepository, names ...string) map[string]upgrade.Candidate {
	h.t.Helper()
	found, err := h.Candidates(h.t.Context(), h.request(r, names...))
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
		Name: c.Name, From: from, To: c.Version, File: c.SHA256 + ".rpm", SHA256: c.SHA256, Size: c.Size, URI: c.URI(),
	}
}

// installs brings the host to a state by rpm itself.
func (h *host) installs(packages ...rpmfile) {
	h.t.Helper()
	argv := h.rpm("rpm", "-U", "--")
	for _, f := range packages {
		argv = append(argv, f.build(h.t))
	}
	tool(h.t, argv...)
}

// versions is what rpm says is installed, as "name version state".
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

func (h *host) write(path, content string) {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(filepath.Dir(h.path(path)), 0o755))
	require.NoError(h.t, os.WriteFile(h.path(path), []byte(content), 0o644))
}

func assertReason(t *testing.T, err error, reason string) *upgrade.Blocked {
	t.Helper()
	var blocked *upgrade.Blocked
	require.ErrorAs(t, err, &blocked)
	assert.Equal(t, reason, blocked.Reason, blocked.Message)
	return blocked
}
