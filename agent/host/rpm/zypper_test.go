package rpm

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// newZypperHost is a throw-away root of a SUSE host; zypper is the real one.
func newZypperHost(t *testing.T) *host {
	t.Helper()
	need(t, "zypper")
	h := newHost(t)
	h.dialect = zypper()
	for _, dir := range []string{zyppReposDir, "run", "var/log/zypp"} {
		require.NoError(t, os.MkdirAll(h.path(dir), 0o755))
	}
	return h
}

// zypperCommand runs the real zypper in the root; Debian's librpm has its database elsewhere.
func (h *host) zypperCommand(args ...string) command.Command {
	h.t.Helper()
	home := h.t.TempDir()
	require.NoError(h.t, os.WriteFile(filepath.Join(home, ".rpmmacros"), []byte("%_dbpath /var/lib/rpm\n"), 0o644))
	return command.Command{
		Argv: append([]string{"zypper", "--root", h.Root, "--non-interactive", "--gpg-auto-import-keys"}, args...), Env: []string{"HOME=" + home, "LC_ALL=C.UTF-8"},
	}
}

// zypper says what it says. It looks for keys on the machine, not in the root.
func (h *host) zypper(args ...string) string {
	h.t.Helper()
	file := h.path(zyppReposDir, "kubernetes.repo")
	if text, err := os.ReadFile(file); err == nil {
		require.NoError(h.t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("file://"+keyringDir), []byte("file://"+h.path(keyringDir))), 0o644))
		defer func() { require.NoError(h.t, os.WriteFile(file, text, 0o644)) }()
	}
	result, err := command.Exec{}.Run(h.t.Context(), h.zypperCommand(args...))
	if err != nil {
		return result.Output() + "\n" + err.Error()
	}
	return result.Output()
}

// imported lets rpm trust the repository's key, as zypper does when it is asked to.
func (h *host) imported() {
	h.t.Helper()
	tool(h.t, h.rpm("rpmkeys", "--import", h.path(h.trust("kubernetes")))...)
}

func TestZyppersSourcesAreReadTheWayZypperReadsThem(t *testing.T) {
	h := newZypperHost(t)
	h.write(zyppReposDir+"/many.repo", `[repo-oss]
name=Main Repository
enabled=1
autorefresh=1
baseurl=http://download.example.com/leap/$releasever/repo/oss/
path=/sub
type=rpm-md
keeppackages=0

[plain]
baseurl=http://download.example.com/plain/
gpgkey=http://download.example.com/key
       file:///etc/pki/rpm-gpg/other

[off]
enabled=0
baseurl=http://download.example.com/off/

[listed]
enabled=yes
mirrorlist=http://download.example.com/mirrors
`)
	h.write("etc/yum.repos.d/ignored.repo", "[ignored]\nbaseurl=http://ignored.example.com/\n")
	sources, err := h.Sources(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []upgrade.SourceFacts{
		{File: "/etc/zypp/repos.d/many.repo", Line: 1, URI: "http://download.example.com/leap/$releasever/repo/oss/"},
		{File: "/etc/zypp/repos.d/many.repo", Line: 10, URI: "http://download.example.com/plain/", SignedBy: "http://download.example.com/key file:///etc/pki/rpm-gpg/other"},
		{File: "/etc/zypp/repos.d/many.repo", Line: 19, URI: "http://download.example.com/mirrors"},
	}, sources)
	listed := h.zypper("--xmlout", "repos")
	enabled := regexp.MustCompile(`alias="([^"]+)"[^>]* enabled="1"`).FindAllStringSubmatch(listed, -1)
	var aliases []string
	for _, m := range enabled {
		aliases = append(aliases, m[1])
	}
	assert.ElementsMatch(t, []string{"repo-oss", "plain", "listed"}, aliases, listed)
}

// B17: from the host's own repository to the next minor and back, and zypper sees what rpm did.
func TestASUSEHostGoesToTheNextMinorAndBack(t *testing.T) {
	h := newZypperHost(t)
	old := kubelet("1.36.3-150500.1.1")
	r := newRepository(t, kubelet("1.37.2-150500.1.1"), kubelet("1.37.1-150500.1.1"))
	r.publish("v1.36", old, rpmfile{name: "kubeadm", version: "1.36.3-150500.1.1"})
	h.installs(old, rpmfile{name: "bystander", version: "1-1"})
	h.configure(r.uri("v1.36"), "")
	h.imported()
	out := h.zypper("refresh")
	require.Contains(t, out, "have been refreshed", out)

	// What zypper has fetched is known without fetching.
	fetched := len(r.Fetched())
	var facts upgrade.Facts
	facts.Packages.Manager = "zypper"
	var err error
	facts.Packages.Installed, err = h.Query(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	facts.Packages.Sources, err = h.Sources(t.Context(), []string{"kubelet", "kubeadm", "kubectl"})
	require.NoError(t, err)
	assert.Equal(t, []string{"kubeadm", "kubelet"}, facts.Packages.Sources[0].Provides)
	indexes, err := h.Indexes(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	require.Len(t, indexes, 1)
	assert.Equal(t, "1.36.3-150500.1.1", indexes[0].Candidates[0].Version)
	assert.Len(t, r.Fetched(), fetched)

	target := v1alpha1.Target{}
	target.Kubelet = "v1.37.2"
	request, changes, err := upgrade.Sources(facts, target, v1alpha1.MachineSpec{})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	assert.Equal(t, "/etc/zypp/repos.d/kubernetes.repo", changes[0].File)
	found, err := h.Candidates(t.Context(), request)
	require.NoError(t, err)
	c, err := upgrade.ResolvePackage(upgrade.OrderingOf("zypper"), found, "kubelet", "v1.37.2")
	require.NoError(t, err)
	forth := []upgrade.PackageChange{change(c, old.version)}
	findings, err := h.Stage(t.Context(), forth)
	require.NoError(t, err)
	assert.Empty(t, findings, "the version to go back to is in the repository that is configured now")

	r.Answer(http.StatusInternalServerError) // installing must not need the repository
	require.NoError(t, h.Switch(t.Context(), changes[0]))
	require.NoError(t, h.Install(t.Context(), forth, h.StageDir()))
	assert.Equal(t, []string{"bystander 1-1 installed", "kubelet 1.37.2-150500.1.1 installed"}, h.versions("kubelet", "bystander"))
	file, digest, err := h.Find(t.Context(), "kubelet", old.version)
	require.NoError(t, err)

	r.Answer(0)
	out = h.zypper("refresh")
	require.Contains(t, out, "have been refreshed", out)
	out = h.zypper("search", "--details", "--installed-only", "kubelet")
	assert.Contains(t, out, "1.37.2-150500.1.1", out)
	assert.Contains(t, h.zypper("verify"), "satisfied")
	assert.Contains(t, h.zypper("list-updates"), "No updates found")

	r.Answer(http.StatusInternalServerError)
	require.NoError(t, h.Switch(t.Context(), changes[0].Back()))
	require.NoError(t, h.Install(t.Context(), []upgrade.PackageChange{{Name: "kubelet", From: c.Version, To: old.version, File: file, SHA256: digest}}, h.BackupDir()))
	assert.Equal(t, []string{"kubelet 1.36.3-150500.1.1 installed"}, h.versions("kubelet"))
	r.Answer(0)
	assert.Contains(t, h.zypper("refresh"), "have been refreshed", "and the repository is the one of before")
	assert.Contains(t, h.zypper("search", "--details", "--installed-only", "kubelet"), "1.36.3-150500.1.1")
}

// B14: a hold of ours is one to zypper, and what it is taken off is as it was.
func TestAHoldIsOneToZypperToo(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	h.installs(kubelet("1.36.3-1"))
	h.configure(r.uri("v1.37"), "")
	h.imported()
	out := h.zypper("refresh")
	require.Contains(t, out, "have been refreshed", out)
	h.zypper("addlock", "bash")
	before := h.read("etc/zypp/locks")
	require.Contains(t, h.zypper("list-updates"), "1.37.2-1")

	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet", "absent"}, true))
	assert.NotContains(t, h.zypper("--xmlout", "update", "--dry-run"), `name="kubelet"`)
	locks := h.zypper("locks")
	assert.Contains(t, locks, "kubelet")
	assert.Contains(t, locks, "bash", "that of somebody else stays")
	assert.NotContains(t, locks, "absent")
	holds, err := h.Holds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"kubelet"}, holds, "bash is not installed")
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, true))
	assert.Equal(t, 1, strings.Count(h.read("etc/zypp/locks"), "kubelet"), "again is fine")

	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, false))
	assert.Equal(t, strings.TrimSpace(before), strings.TrimSpace(h.read("etc/zypp/locks")))
	assert.Contains(t, h.zypper("--xmlout", "update", "--dry-run"), `name="kubelet"`, "the lock is what kept it from zypper")
}

// Whatever zypper writes for a lock is a hold, and one that it takes off is none.
func TestALockOfZypperIsAHoldToRefit(t *testing.T) {
	h := newZypperHost(t)
	h.installs(kubelet("1.36.3-1"), rpmfile{name: "containerd.io", version: "1:1.7.2-1"}, rpmfile{name: "kernel-default", version: "5-1"}, rpmfile{name: "telnet", version: "1-1"})
	h.zypper("addlock", "kubelet", "kernel-*")
	h.zypper("addlock", "containerd.io > 1.7.2")
	h.zypper("addlock", "-t", "patch", "telnet")
	holds, err := h.Holds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"containerd.io", "kernel-default", "kubelet"}, holds, h.read("etc/zypp/locks"))
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, false))
	before := h.read("etc/zypp/locks")
	for _, held := range []bool{false, true} {
		require.NoError(t, h.SetHold(t.Context(), []string{"containerd.io", "kernel-default"}, held))
		assert.Equal(t, before, h.read("etc/zypp/locks"), "what is limited, or about others too, is the owner's")
	}
	left := h.zypper("locks")
	assert.NotContains(t, left, "kubelet")
	assert.Contains(t, left, "kernel-*")
	h.zypper("removelock", "kernel-*")
	holds, err = h.Holds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"containerd.io"}, holds)
}

// A lock that a person wrote by hand may be for a part of a name, or an expression.
func TestEveryKindOfALockIsRead(t *testing.T) {
	installed := []string{"kubelet", "kubelet-extra", "telnet"}
	for text, want := range map[string][]string{
		"solvable_name: kube\n":                                         {"kubelet", "kubelet-extra"},
		"match_type: exact\nsolvable_name: kubelet\n":                   {"kubelet"},
		"match_type: glob\nsolvable_name: kube*\nsolvable_name: tel?et": {"kubelet", "kubelet-extra", "telnet"},
		"match_type: regex\nsolvable_name: ^k.*a$\n":                    {"kubelet-extra"},
		"match_type: regex\nsolvable_name: (\n":                         nil,
		"kind: patch\nsolvable_name: kubelet\n":                         nil,
		"# solvable_name: kubelet\n\n\n":                                nil,
		"query_string: telnet\nmatch_type: substring":                   {"telnet"},
	} {
		var held []string
		for _, name := range installed {
			if matches(zyppLocks{}.names(text), name) {
				held = append(held, name)
			}
		}
		assert.Equal(t, want, held, text)
	}
	const both = "type: package\nmatch_type: glob\nsolvable_name: kubelet\nsolvable_name: telnet\n\n# kept\n"
	assert.Equal(t, "type: package\nmatch_type: glob\nsolvable_name: telnet\n\n# kept\n", zyppLocks{}.without(both, []string{"kubelet"}))
	assert.Equal(t, "# kept\n", zyppLocks{}.without(both, []string{"kubelet", "telnet"}))
	const part = "solvable_name: kubelet\n"
	assert.Equal(t, part, zyppLocks{}.without(part, []string{"kubelet"}), "it is about others too")
}

// Locks are not lifted for a transaction, so that they hold however it ends.
func TestALockStaysHoweverATransactionEnds(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("2-1"), rpmfile{name: "kubelet", version: "3-1", pre: "error('no')"})
	h.installs(kubelet("1-1"))
	h.zypper("addlock", "kubelet")
	before := h.read("etc/zypp/locks")
	found := h.candidates(r, "kubelet")
	good, bad := []upgrade.PackageChange{change(found["kubelet 2-1"], "1-1")}, []upgrade.PackageChange{change(found["kubelet 3-1"], "2-1")}
	for _, changes := range [][]upgrade.PackageChange{good, bad} {
		_, err := h.Stage(t.Context(), changes)
		require.NoError(t, err)
	}
	require.NoError(t, h.Install(t.Context(), good, h.StageDir()))
	require.Error(t, h.Install(t.Context(), bad, h.StageDir()))
	assert.Equal(t, []string{"kubelet 2-1 installed"}, h.versions("kubelet"))
	assert.Equal(t, before, h.read("etc/zypp/locks"))
}

// zypperShell is a zypper that waits for its next command, with libzypp's lock held.
func (h *host) zypperShell() (pid int, end func()) {
	h.t.Helper()
	c := h.zypperCommand("shell")
	shell := exec.CommandContext(h.t.Context(), command.Find(c.Argv[0]), c.Argv[1:]...)
	shell.Env = append(os.Environ(), c.Env...)
	var out bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &out
	stdin, err := shell.StdinPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, shell.Start())
	end = sync.OnceFunc(func() { _ = stdin.Close(); _ = shell.Wait() })
	h.t.Cleanup(end)
	require.Eventually(h.t, func() bool {
		text, err := os.ReadFile(h.path("run/zypp.pid"))
		return err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(shell.Process.Pid)
	}, time.Minute, 10*time.Millisecond)
	_, _ = io.WriteString(stdin, "\n")
	return shell.Process.Pid, end
}

// B13: libzypp's lock is a file that names its holder; it is waited for, and never broken.
func TestZyppersLockIsWaitedForWithItsHolderNamed(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("2-1"))
	h.installs(kubelet("1-1"))
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2-1"], "1-1")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	holder, err := h.LockHolder()
	require.NoError(t, err)
	require.Nil(t, holder)

	pid, end := h.zypperShell()
	holder, err = h.LockHolder()
	require.NoError(t, err)
	require.NotNil(t, holder)
	assert.Equal(t, upgrade.LockFacts{PID: pid, Command: "zypper", Path: h.path("run/zypp.pid")}, *holder)
	h.LockTimeout = time.Millisecond
	blocked := assertReason(t, h.Install(t.Context(), changes, h.StageDir()), upgrade.ReasonPackageLockHeld)
	assert.Contains(t, blocked.Message, "(zypper) holds")
	assertReason(t, h.SetHold(t.Context(), []string{"kubelet"}, true), upgrade.ReasonPackageLockHeld)
	assert.Equal(t, []string{"kubelet 1-1 installed"}, h.versions("kubelet"))

	h.LockTimeout = time.Minute
	time.AfterFunc(100*time.Millisecond, end)
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, []string{"kubelet 2-1 installed"}, h.versions("kubelet"))
}

// zypper wants metadata signed unless a file says that it need not be; so does Refit.
func TestZyppersRepositoriesAreSigned(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("2-1"))
	require.NoError(t, os.Remove(r.path("v1.37", "repodata/repomd.xml.asc")))
	for extra, reason := range map[string]string{"": "RepoSignature", "repo_gpgcheck=0\n": "", "gpgcheck=0\n": "RepoSignature", "repo_gpgcheck=1\n": "RepoSignature"} {
		h.configure(r.uri("v1.37"), extra)
		_, err := h.Candidates(t.Context(), h.request(r, "kubelet"))
		if reason == "" {
			assert.NoError(t, err, extra)
			continue
		}
		assert.True(t, assertReason(t, err, reason).Terminal, extra)
	}
	h.configure(r.uri("v1.37"), "")
	assert.NotContains(t, h.zypper("refresh"), "have been refreshed", "nor does zypper")
}

func TestAKeyThatIsWrittenIsTheOneThatZypperGoesBy(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("2-1"))
	h.configure(r.uri("v1.37"), "")
	h.write(keyringDir+"/kubernetes.asc", "no key")
	require.NotContains(t, h.zypper("refresh"), "have been refreshed")
	h.trust("refit")
	sources, err := h.Sources(t.Context(), nil)
	require.NoError(t, err)
	change := upgrade.SourceChange{
		Name: "kubernetes", File: sources[0].File, From: sources[0].URI, To: sources[0].URI, SignedBy: "refit", Was: &upgrade.SourceWords{SignedBy: sources[0].SignedBy},
	}
	require.NoError(t, h.Switch(t.Context(), change))
	out := h.zypper("refresh")
	assert.Contains(t, out, "have been refreshed", out)
}

func TestANewSourceIsOneToZypper(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("2-1"))
	h.trust("refit")
	change := upgrade.SourceChange{Name: "kubernetes", File: "/etc/zypp/repos.d/kubernetes.repo", To: r.uri("v1.37"), SignedBy: "refit"}
	require.NoError(t, h.Switch(t.Context(), change))
	out := h.zypper("refresh")
	assert.Contains(t, out, "have been refreshed", out)
	assert.Contains(t, h.zypper("search", "--details", "kubelet"), "2-1")
	require.NoError(t, h.Switch(t.Context(), change.Back()))
	assert.Contains(t, h.zypper("repos"), "No repositories defined")
}

// A registered host has its token behind the question mark of a URI, or in a file that the URI names.
func TestWhatAURISaysOfItsServerIsHeeded(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	var mu sync.Mutex
	var queries, users []string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		mu.Lock()
		queries, users = append(queries, req.URL.RawQuery), append(users, user+":"+password)
		mu.Unlock()
		if user != "SCC_me" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.ServeHTTP(w, req)
	}))
	defer front.Close()
	uri := front.URL + "/v1.37?credentials=SCC&kFz0~token&ssl_verify=no"
	h.configure(uri, "path=/rpm/\n")
	request := h.request(r, "kubelet")
	request.Sources[0].URI = uri
	_, err := h.Candidates(t.Context(), request)
	assert.Contains(t, assertReason(t, err, "RepoUnavailable").Message, "/etc/zypp/credentials.d/SCC")

	h.write("etc/zypp/credentials.d/SCC", "username=SCC_me\npassword = secret\n")
	found, err := h.Candidates(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, front.URL+"/v1.37/rpm/", found[0].Source, "a plan has no secret in it")
	_, err = h.Stage(t.Context(), []upgrade.PackageChange{change(found[0], "")})
	require.NoError(t, err)
	mu.Lock()
	for i := range queries {
		assert.Equal(t, "kFz0~token", queries[i])
		assert.Equal(t, "SCC_me:secret", users[i])
	}
	mu.Unlock()

	front.Close()
	_, err = h.Candidates(t.Context(), request)
	assert.NotContains(t, assertReason(t, err, "RepoUnreachable").Message, "token")
}

func TestTheProxyOfTheHostIsUsed(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	var mu sync.Mutex
	asked := map[string]int{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		asked[req.Host]++
		mu.Unlock()
		req.URL.Scheme, req.URL.Host = "", ""
		r.ServeHTTP(w, req)
	}))
	defer proxy.Close()
	request := h.request(r, "kubelet")
	request.Sources[0].URI = "http://far.example/v1.37/rpm/"
	h.write("etc/sysconfig/proxy", "PROXY_ENABLED=\"yes\"\nHTTP_PROXY=\""+proxy.URL+"\"\nNO_PROXY=\"localhost, 127.0.0.1, .near.example\"\n")
	found, err := h.Candidates(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, found, 1)
	mu.Lock()
	assert.Positive(t, asked["far.example"])
	mu.Unlock()
	_, err = h.Candidates(t.Context(), h.request(r, "kubelet"))
	require.NoError(t, err, "what needs none goes without")
	mu.Lock()
	assert.Len(t, asked, 1)
	mu.Unlock()
}

// B12: a SUSE host keeps its configuration files as one of dnf does.
func TestAConfigurationFileIsKeptOnASUSEHostToo(t *testing.T) {
	h := newZypperHost(t)
	before := rpmfile{name: "kubelet", version: "1-1", replaced: map[string]string{"etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS=\n"}}
	after := before
	after.version, after.replaced = "2-1", map[string]string{"etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS=--new\n"}
	r := newRepository(t, after)
	h.installs(before)
	h.write("etc/sysconfig/kubelet", "KUBELET_EXTRA_ARGS=--node-ip=192.0.2.7\n")
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2-1"], "1-1")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, "KUBELET_EXTRA_ARGS=--node-ip=192.0.2.7\n", h.read("etc/sysconfig/kubelet"))
	assert.Equal(t, "KUBELET_EXTRA_ARGS=--new\n", h.read("etc/sysconfig/kubelet.rpmnew"))
	assert.NoFileExists(t, h.path("etc/sysconfig/kubelet.rpmsave"))
}

// B20: the macros of SUSE ask for a word of their own before they restart a service.
func TestScriptletsOfSUSEAreToldToRestartNothing(t *testing.T) {
	h := newZypperHost(t)
	script := `local f = io.open("/log", "a"); f:write((os.getenv("SYSTEMD_OFFLINE") or "") .. (os.getenv("DISABLE_RESTART_ON_UPDATE") or "") .. "\n"); f:close()`
	r := newRepository(t, rpmfile{name: "kubelet", version: "2-1", post: script})
	h.installs(rpmfile{name: "kubelet", version: "1-1", postun: script})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2-1"], "1-1")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, "1yes\n1yes\n", h.read("log"))
}

// B21: a version that zypper brought is told with its command.
func TestWhoBroughtAVersionIsToldFromZyppersLog(t *testing.T) {
	h := newZypperHost(t)
	r := newRepository(t, kubelet("2-1"))
	h.installs(kubelet("1-1"))
	h.configure(r.uri("v1.37"), "")
	h.imported()
	out := h.zypper("refresh")
	require.Contains(t, out, "have been refreshed", out)
	out = h.zypper("update", "kubelet")
	require.Equal(t, []string{"kubelet 2-1 installed"}, h.versions("kubelet"), out)
	by, err := h.ChangedBy([]upgrade.InstalledPackage{{Name: "kubelet", Version: "2-1"}, {Name: "other", Version: "1-1"}})
	require.NoError(t, err)
	require.Len(t, by, 1, h.read(zyppHistory))
	assert.Contains(t, by["kubelet"], "zypper --root "+h.Root)
	assert.Contains(t, by["kubelet"], "by the host's clock")
}
