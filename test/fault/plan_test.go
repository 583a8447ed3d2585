package fault

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// versions is one of the two states that the host goes between.
type versions struct{ kubernetes, containerd string }

var (
	before = versions{"v1.36.3", "1.7.35"}
	after  = versions{"v1.37.2", "2.4.2"}
)

func (v versions) deb() string { return strings.TrimPrefix(v.kubernetes, "v") + "-1.1" }

func (v versions) runtimeDeb() string { return v.containerd + "-1" }

func (v versions) repository() string {
	minor := v.kubernetes[:strings.LastIndex(v.kubernetes, ".")]
	return "http://mirror.fleet.test/kubernetes/" + minor + "/deb/"
}

func (v versions) String() string { return v.kubernetes + " with containerd " + v.containerd }

// change is a package change with the file that the mirror has for it.
func change(t *testing.T, name, repository, from, to string) upgrade.PackageChange {
	t.Helper()
	at := strings.Replace(repository, "http://mirror.fleet.test", fleet.MirrorURL(), 1)
	answer, err := http.Get(at + "Packages")
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode, at)
	fields := map[string]string{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if lines.Text() == "" {
			fields = map[string]string{}
			continue
		}
		key, value, _ := strings.Cut(lines.Text(), ": ")
		fields[key] = value
		if fields["Package"] == name && fields["Version"] == to && fields["SHA256"] != "" && fields["Filename"] != "" && fields["Size"] != "" {
			size, err := strconv.ParseInt(fields["Size"], 10, 64)
			require.NoError(t, err)
			return upgrade.PackageChange{
				Name: name, From: from, To: to, File: fields["SHA256"] + ".deb", SHA256: fields["SHA256"], Size: size,
				URI: repository + strings.TrimPrefix(fields["Filename"], "./"),
			}
		}
	}
	require.Failf(t, "the mirror lacks a package", "%s %s in %s", name, to, at)
	return upgrade.PackageChange{}
}

func named(names ...string) []upgrade.PackageChange {
	var changes []upgrade.PackageChange
	for _, n := range names {
		changes = append(changes, upgrade.PackageChange{Name: n})
	}
	return changes
}

// window is what a worker's window has: every kind of step that a host without a cluster
// knows, with a new minor of the kubelet and a new major of the runtime.
func window(t *testing.T, from, to versions) upgrade.Plan {
	t.Helper()
	kubernetes := func(name string) upgrade.PackageChange {
		return change(t, name, to.repository(), from.deb(), to.deb())
	}
	kubeadm, kubelet, kubectl := kubernetes("kubeadm"), kubernetes("kubelet"), kubernetes("kubectl")
	containerd := change(t, "containerd.io", "http://mirror.fleet.test/containerd/deb/", from.runtimeDeb(), to.runtimeDeb())
	all := []upgrade.PackageChange{kubeadm, kubelet, kubectl, containerd}
	return sealed(t, upgrade.Plan{
		AssignmentID: "7-abc", Type: v1alpha1.OperationUpgrade, Disruption: v1alpha1.DisruptionDrain,
		Stage: &upgrade.Step{Kind: upgrade.StepStage, Packages: all},
		Steps: []upgrade.Step{
			{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{Kubelet: from.kubernetes, Runtime: from.containerd, Packages: all}},
			{Kind: upgrade.StepRunHook, Hook: "check"},
			{Kind: upgrade.StepSwitchSource, Source: &upgrade.SourceChange{
				Name: "kubernetes", File: "/etc/apt/sources.list.d/kubernetes.list", From: from.repository(), To: to.repository(),
			}},
			{Kind: upgrade.StepUnholdPackages, Packages: named("kubeadm")},
			{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{kubeadm}},
			{Kind: upgrade.StepHoldPackages, Packages: named("kubeadm")},
			{Kind: upgrade.StepWriteConfig, File: &upgrade.FileChange{
				Path: "/etc/systemd/system/kubelet.service.d/30-window.conf", Content: fmt.Sprintf("# %s\n[Service]\nEnvironment=KUBELET_CONFIG_DROPIN_DIR_ALPHA=true\n", to.kubernetes), Mode: 0o644,
			}},
			{Kind: upgrade.StepStopSandboxes, Unit: "kubelet.service"},
			{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{containerd}},
			{Kind: upgrade.StepReloadUnits},
			{Kind: upgrade.StepRestartUnit, Unit: "containerd.service"},
			{Kind: upgrade.StepUnholdPackages, Packages: named("kubelet", "kubectl")},
			{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{kubelet, kubectl}},
			{Kind: upgrade.StepHoldPackages, Packages: named("kubelet", "kubectl")},
			{Kind: upgrade.StepReloadUnits},
			{Kind: upgrade.StepRestartUnit, Unit: "kubelet.service"},
			{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{
				Kubelet: to.kubernetes, RuntimeName: "containerd", Runtime: to.containerd, StartSandbox: true, Packages: all,
			}},
		},
	})
}

func sealed(t *testing.T, p upgrade.Plan) upgrade.Plan {
	t.Helper()
	hash, err := p.ComputeHash()
	require.NoError(t, err)
	p.Hash = hash
	return p
}

// stage stages a plan with the executor's own verb.
func (m *machine) stage(p upgrade.Plan) {
	m.t.Helper()
	data, err := upgrade.MarshalStable(p)
	require.NoError(m.t, err)
	m.write("/run/plan.json", string(data))
	m.sh("refit-executor stage --plan /run/plan.json --output /run/staged.json --log-level warn")
	require.NotContains(m.t, m.sh("cat /run/staged.json"), "NoRollbackPackage", "there is a way back for every package")
}
