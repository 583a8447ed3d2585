package fault

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// A new kubelet that does not come up gives way to the old one, by itself and with no API
// server to ask: the host has none. The unit is waited for until its deadline of five
// minutes, so this is one of the long tests.
func TestAKubeletThatDoesNotComeUpGivesWayToTheOldOne(t *testing.T) {
	m := realHost(t)
	if !exhaustive() {
		t.Skip("set REFIT_EXHAUSTIVE=1: a kubelet is waited for as long as on any host")
	}
	was := m.look()
	require.NoError(t, was.at(before), "the tests before leave the host at its first versions")
	plan := window(t, before, after)
	m.stage(plan)
	for i, s := range plan.Steps { // the kubelet of the new minor with a flag that no kubelet has
		if s.Kind == upgrade.StepWriteConfig {
			plan.Steps[i].File.Content = "[Service]\nEnvironment=\"KUBELET_EXTRA_ARGS=--no-such-flag\"\n"
		}
	}
	plan = sealed(t, plan)
	begin := time.Now()
	m.submit(upgrade.Operation{ID: "bad-kubelet", Machine: m.Name(), Plan: plan})
	m.start("bad-kubelet")
	rec := m.follow("bad-kubelet")
	t.Logf("after %s: %s: %s", time.Since(begin).Round(time.Second), rec.Reason, rec.Message)
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, upgrade.StepRestartUnit, rec.FailedStep)
	assert.Contains(t, []string{"UnitNotActive", "KubeletUnhealthy"}, rec.Reason)
	assert.True(t, rec.RolledBack, rec.Message)
	assert.Contains(t, rec.Message, "the host runs again what it ran before")
	assert.Equal(t, was, m.look())
}

// A new runtime that does not come up gives way to the old one, without a wait for
// sandboxes that nobody can stop.
func TestARuntimeThatDoesNotComeUpGivesWayToTheOldOne(t *testing.T) {
	m := realHost(t)
	const dir = "/etc/systemd/system/containerd.service.d"
	m.write(dir+"/90-old.conf", "[Service]\nExecStartPre=/bin/sh -c 'containerd --version | grep -Eq \" v?1[.]\"'\n")
	m.sh("systemctl daemon-reload")
	defer m.sh("rm " + dir + "/90-old.conf; systemctl daemon-reload")
	was := m.look()
	require.NoError(t, was.at(before), "the tests before leave the host at its first versions")
	plan := sealed(t, runtimeOnly(t, before, after))
	m.stage(plan)
	begin := time.Now()
	m.submit(upgrade.Operation{ID: "bad-runtime", Machine: m.Name(), Plan: plan})
	m.start("bad-runtime")
	rec := m.follow("bad-runtime")
	t.Logf("after %s: %s: %s", time.Since(begin).Round(time.Second), rec.Reason, rec.Message)
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, upgrade.StepRestartUnit, rec.FailedStep)
	assert.Equal(t, "UnitNotActive", rec.Reason)
	assert.True(t, rec.RolledBack, rec.Message)
	assert.Contains(t, rec.Message, "the host runs again what it ran before")
	assert.Equal(t, was, m.look())
}

// The runtime's new major on a host where no pod runs.
func TestARuntimeMovesAcrossAMajorWithoutPods(t *testing.T) {
	m := realHost(t)
	if !exhaustive() {
		t.Skip("set REFIT_EXHAUSTIVE=1: with pods it is part of every window")
	}
	m.sh("mv /etc/kubernetes/manifests/app.yaml /root/")
	m.eventually("no container runs", func() bool { return m.containers() == 0 })
	from, to := before, after
	for _, way := range []string{"there", "back"} {
		plan := sealed(t, runtimeOnly(t, from, to))
		m.stage(plan)
		id := "runtime-" + way
		m.submit(upgrade.Operation{ID: id, Machine: m.Name(), Plan: plan})
		m.start(id)
		rec := m.follow(id)
		require.Equal(t, journal.Successful, rec.State, rec.Message)
		assert.Contains(t, m.sh("ctr version"), to.containerd)
		from, to = to, from
	}
	m.sh("mv /root/app.yaml /etc/kubernetes/manifests/")
	require.NoError(t, m.look().at(before))
}

func runtimeOnly(t *testing.T, from, to versions) upgrade.Plan {
	t.Helper()
	containerd := []upgrade.PackageChange{change(t, "containerd.io", "http://mirror.fleet.test/containerd/deb/", from.runtimeDeb(), to.runtimeDeb())}
	return upgrade.Plan{
		AssignmentID: "7-abc", Type: v1alpha1.OperationUpgrade, Disruption: v1alpha1.DisruptionDrain,
		Stage: &upgrade.Step{Kind: upgrade.StepStage, Packages: containerd},
		Steps: []upgrade.Step{
			{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{Runtime: from.containerd, Packages: containerd}},
			{Kind: upgrade.StepStopSandboxes, Unit: "kubelet.service"},
			{Kind: upgrade.StepInstallPackages, Packages: containerd},
			{Kind: upgrade.StepReloadUnits},
			{Kind: upgrade.StepRestartUnit, Unit: "containerd.service"},
			{Kind: upgrade.StepRestartUnit, Unit: "kubelet.service"},
			{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{RuntimeName: "containerd", Runtime: to.containerd, StartSandbox: true, Packages: containerd}},
		},
	}
}

// What staging may meet on its way to a repository changes nothing on the host and says
// whether it may pass.
func TestARepositoryThatFailsIsToldAndChangesNothing(t *testing.T) {
	m := realHost(t)
	mirror := m.mirror(t)
	was := m.sh("find /etc /var/lib/dpkg -xdev -type f -print0 | sort -z | xargs -0 sha256sum")
	for _, fault := range []struct{ mode, reason string }{
		{"away", "RepoUnreachable"}, {"403", "RepoUnavailable"}, {"404", "RepoUnavailable"}, {"500", "RepoUnreachable"},
		{"wrong signature", "RepoSignature"}, {"wrong index", "DigestMismatch"},
	} {
		t.Run(fault.mode, func(t *testing.T) {
			m.t = t
			mirror.fail(fault.mode)
			m.write("/run/request.json", fmt.Sprintf(`{"sources":[{"name":"kubernetes","uri":"%s/kubernetes/v1.37/deb/","suites":["/"],"signedBy":"refit-kubernetes"}],"packages":["kubelet"]}`, mirror.uri()))
			m.sh("rm -rf " + stateDir + "/apt /run/answer.json; refit-executor candidates --request /run/request.json --output /run/answer.json --log-level error 2>/dev/null || true")
			assert.Contains(t, m.sh("cat /run/answer.json"), fmt.Sprintf("%q: %q", "reason", fault.reason))
		})
	}
	t.Run("wrong package", func(t *testing.T) {
		m.t = t
		mirror.fail("wrong package")
		plan := window(t, before, after)
		for i := range plan.Stage.Packages {
			plan.Stage.Packages[i].URI = mirror.redirected(plan.Stage.Packages[i].URI)
		}
		data, err := upgrade.MarshalStable(sealed(t, plan))
		require.NoError(t, err)
		m.write("/run/plan.json", string(data))
		m.sh("rm -f " + stateDir + "/stage/*; refit-executor stage --plan /run/plan.json --output /run/answer.json --log-level error 2>/dev/null || true")
		assert.Contains(t, m.sh("cat /run/answer.json"), "DigestMismatch")
		assert.Empty(t, m.sh("find "+stateDir+"/stage -name '*.deb'"), "nothing of it stays")
	})
	m.t = t
	assert.Equal(t, was, m.sh("find /etc /var/lib/dpkg -xdev -type f -print0 | sort -z | xargs -0 sha256sum"))
}
