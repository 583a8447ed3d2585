package pack_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/hack/release/pack"
)

const deploy = "../../../deploy"

var commit = time.Unix(1_700_000_000, 0)

// programs stands for the built ones, written at some time under some umask.
func programs(t *testing.T, mode os.FileMode, at time.Time) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"refit-agent", "refit-executor"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("the program "+name), 500), mode))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	return dir
}

func write(t *testing.T, p pack.Package) string {
	t.Helper()
	path, err := p.Write(t.TempDir())
	require.NoError(t, err)
	return path
}

// run skips the test where the tool is not installed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

func TestTwoBuildsGiveTheSameBytes(t *testing.T) {
	for _, format := range pack.Formats {
		for _, arch := range []string{"amd64", "arm64"} {
			t.Run(format+" "+arch, func(t *testing.T) {
				var sums [][32]byte
				for _, dir := range []string{programs(t, 0o755, time.Unix(1, 0)), programs(t, 0o700, time.Now())} {
					data, err := os.ReadFile(write(t, pack.Package{Format: format, Arch: arch, Version: "v1.2.3", Time: commit, Deploy: deploy, Programs: dir}))
					require.NoError(t, err)
					sums = append(sums, sha256.Sum256(data))
				}
				assert.Equal(t, sums[0], sums[1])
				other, err := os.ReadFile(write(t, pack.Package{Format: format, Arch: arch, Version: "v1.2.4", Time: commit, Deploy: deploy, Programs: programs(t, 0o755, commit)}))
				require.NoError(t, err)
				assert.NotEqual(t, sums[0], sha256.Sum256(other), "another version is another package")
			})
		}
	}
}

func TestTheDebHasWhatAHostNeeds(t *testing.T) {
	path := write(t, pack.Package{Format: "deb", Arch: "arm64", Version: "v1.2.3-rc.1", Time: commit, Deploy: deploy, Programs: programs(t, 0o700, commit)})
	assert.Equal(t, "refit-agent_1.2.3~rc.1-1_arm64.deb", filepath.Base(path))
	list := run(t, "dpkg-deb", "--contents", path)
	for _, want := range []string{
		"-rwxr-xr-x root/root", "./usr/bin/refit-agent", "./usr/bin/refit-executor",
		"./usr/lib/systemd/system/refit-agent.service", "./usr/lib/systemd/system/refit-resume.service", "./etc/refit/agent.yaml",
	} {
		assert.Contains(t, list, want)
	}
	assert.Equal(t, "1.2.3~rc.1-1\n", run(t, "dpkg-deb", "--field", path, "Version"))
	assert.Equal(t, "arm64\n", run(t, "dpkg-deb", "--field", path, "Architecture"))

	control := t.TempDir()
	run(t, "dpkg-deb", "--control", path, control)
	conffiles, err := os.ReadFile(filepath.Join(control, "conffiles"))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"/etc/refit/agent.yaml", "/etc/needrestart/conf.d/refit.conf"}, strings.Fields(string(conffiles)))
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		run(t, "sh", "-n", filepath.Join(control, script))
	}
}

func TestTheRpmHasWhatAHostNeeds(t *testing.T) {
	path := write(t, pack.Package{Format: "rpm", Arch: "arm64", Version: "v1.2.3-rc.1", Time: commit, Deploy: deploy, Programs: programs(t, 0o700, commit)})
	assert.Equal(t, "refit-agent-1.2.3~rc.1-1.aarch64.rpm", filepath.Base(path))
	list := run(t, "rpm", "-qp", "--nosignature", "--queryformat", `[%{FILEMODES:perms} %{FILEUSERNAME} %{FILENAMES} %{FILEFLAGS:fflags}\n]`, path)
	for _, want := range []string{
		"-rwxr-xr-x root /usr/bin/refit-agent", "-rwxr-xr-x root /usr/bin/refit-executor",
		"-rw-r--r-- root /usr/lib/systemd/system/refit-agent.service", "-rw-r--r-- root /usr/lib/systemd/system/refit-resume.service",
		"-rw-r--r-- root /etc/refit/agent.yaml cn",
	} {
		assert.Contains(t, list, want)
	}
	head := run(t, "rpm", "-qp", "--nosignature", "--queryformat", "%{VERSION}-%{RELEASE} %{ARCH} %{BUILDHOST} %{BUILDTIME}", path)
	assert.Equal(t, "1.2.3~rc.1-1 aarch64 refit.dev 1700000000", head)
	scripts := run(t, "rpm", "-qp", "--nosignature", "--scripts", path)
	for _, want := range []string{"postinstall scriptlet", "preuninstall scriptlet", "postuninstall scriptlet"} {
		assert.Contains(t, scripts, want)
	}
}

// A release candidate is replaced by its release, and a release by what is built after it.
func TestPackageManagersSortTheVersionsAsWeDo(t *testing.T) {
	order := []string{"dev", "v1.2.3-rc.1", "v1.2.3-rc.1-2-gabcdef0", "v1.2.3-rc.2", "v1.2.3", "v1.2.3-2-gabcdef0", "v1.2.10"}
	for i := range order[1:] {
		lower, higher := pack.PackageVersion(order[i]), pack.PackageVersion(order[i+1])
		run(t, "dpkg", "--compare-versions", lower, "lt", higher)
		if _, err := exec.LookPath("rpm"); err == nil {
			out := run(t, "rpm", "--eval", `%{lua:print(rpm.vercmp("`+lower+`","`+higher+`"))}`)
			assert.Equal(t, "-1\n", out, "rpm: %s and %s", lower, higher)
		}
	}
}

func TestAScriptThatIsNotThereIsNamed(t *testing.T) {
	_, err := pack.Package{Format: "deb", Arch: "amd64", Version: "v1.2.3", Time: commit, Deploy: t.TempDir(), Programs: programs(t, 0o755, commit)}.Write(t.TempDir())
	require.ErrorContains(t, err, "refit-agent.service")
}
