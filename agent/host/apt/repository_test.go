package apt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/hostfake/mirror"
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
			require.NotEqual(t, "true", os.Getenv("CI"), "hack/install-deps installs %s", program)
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
	// What this machine is configured with is not of this host.
	require.NoError(t, os.WriteFile(filepath.Join(root, "apt.conf"), []byte("Dir \""+root+"\";\n"), 0o644))
	a := New(root)
	a.Runner = configured{command.Exec{}, filepath.Join(root, "apt.conf")}
	a.LockTimeout = 2 * time.Second
	// Scripts run outside of the root, which has no shell; they find it in DPKG_ROOT.
	a.DpkgOptions = []string{"--force-script-chrootless"}
	return &host{Apt: a, t: t}
}

// configured runs programs with the configuration of a host.
type configured struct {
	command.Runner
	file string
}

func (r configured) Run(ctx context.Context, c command.Command) (command.Result, error) {
	c.Env = append(slices.Clone(c.Env), "APT_CONFIG="+r.file)
	return r.Runner.Run(ctx, c)
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
	*mirror.Server
	t     *testing.T
	dir   string
	label string // of its Release
	// published moves on with every publication.
	published time.Duration
	// dated and validUntil are what the signed index says of itself; now and for ever unless they are set.
	dated, validUntil time.Time
	// signer is the key that signs the index, refit-test unless it is set.
	signer string
}

var keys = &mirror.Keys{Algorithm: "ed25519", Names: []string{"refit-test", "refit-other"}}

func TestMain(m *testing.M) {
	code := m.Run()
	keys.Remove()
	os.Exit(code)
}

func newRepository(t *testing.T, debs ...deb) *repository {
	t.Helper()
	r := &repository{t: t, Server: mirror.Serve(t)}
	r.dir = filepath.Join(r.Dir, "deb")
	require.NoError(t, os.Mkdir(r.dir, 0o755))
	r.publish(debs...)
	return r
}

func (r *repository) uri() string { return r.URL + "/deb/" }

// publish writes Packages and a signed InRelease over what was there.
func (r *repository) publish(debs ...deb) {
	r.t.Helper()
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
	const form = "Mon, 02 Jan 2006 15:04:05 MST"
	dated, until := time.Now(), ""
	if !r.dated.IsZero() {
		dated = r.dated
	}
	if !r.validUntil.IsZero() {
		until = "Valid-Until: " + r.validUntil.UTC().Format(form) + "\n"
	}
	release := fmt.Sprintf("Origin: test\nLabel: "+r.label+"\nDate: %s\n%sArchitectures: amd64 arm64 all\nSHA256:\n %s %d Packages\n",
		dated.UTC().Format(form), until, hex.EncodeToString(sum[:]), len(packages))
	plain := filepath.Join(r.t.TempDir(), "Release")
	require.NoError(r.t, os.WriteFile(plain, []byte(release), 0o644))
	keys.GPG(r.t, "--clearsign", "--local-user", cmp.Or(r.signer, "refit-test"), "-o", filepath.Join(r.dir, "InRelease"), plain)
	// Servers tell time in seconds; two publications within one must not look like the same.
	r.published += time.Minute
	stamp := time.Now().Add(r.published - time.Hour)
	require.NoError(r.t, os.Chtimes(filepath.Join(r.dir, "InRelease"), stamp, stamp))
}

func (r *repository) write(name, content string) { r.Write(r.t, "deb/"+name, []byte(content)) }

// trust puts the repository's key on the host under a name.
func (h *host) trust(name string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.path("etc/apt/keyrings", name+".asc"), []byte(keys.Public(h.t, "refit-test")), 0o644))
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
