package fault

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func (m *machine) rebootPlan() upgrade.Plan {
	m.t.Helper()
	boot, err := m.BootID(m.ctx)
	require.NoError(m.t, err)
	return sealed(m.t, upgrade.Plan{
		AssignmentID: "9-abc", Type: v1alpha1.OperationReboot, Disruption: v1alpha1.DisruptionReboot,
		Steps: []upgrade.Step{
			{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{BootID: boot}},
			{Kind: upgrade.StepReboot, Reason: "kernel"},
			{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{BootIDNot: boot, Kubelet: before.kubernetes, StartSandbox: true}},
		},
	})
}

// A reboot that comes about is gone on with by the next boot, without an agent.
func TestARebootIsFollowedByTheNextBoot(t *testing.T) {
	m := realHost(t)
	plan := m.rebootPlan()
	m.submit(upgrade.Operation{ID: "reboot", Machine: m.Name(), Plan: plan})
	m.start("reboot")
	m.eventually("the next boot has ended the operation", func() bool {
		rec, err := m.record("reboot")
		return err == nil && rec.Finished()
	})
	rec, err := m.record("reboot")
	require.NoError(t, err)
	assert.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.NotEqual(t, plan.Steps[0].Expect.BootID, m.sh("cat /proc/sys/kernel/random/boot_id"))
}

// One that does not come about ends with a reason.
func TestARebootThatSystemdRefusesEndsWithAReason(t *testing.T) {
	m := realHost(t)
	m.sh("systemctl mask --runtime --quiet reboot.target systemd-reboot.service")
	t.Cleanup(func() { m.sh("systemctl unmask --runtime --quiet reboot.target systemd-reboot.service") })
	begin := time.Now()
	m.submit(upgrade.Operation{ID: "no-reboot", Machine: m.Name(), Plan: m.rebootPlan()})
	m.start("no-reboot")
	rec := m.follow("no-reboot")
	assert.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, "RebootFailed", rec.Reason)
	assert.Contains(t, rec.Message, "masked")
	t.Logf("after %s: %s", time.Since(begin).Round(time.Second), rec.Message)
}

// A journal that cannot be trusted stops the work, and says what to do; the host and the next boot do without it.
func TestADamagedJournalIsASafeStop(t *testing.T) {
	m := realHost(t)
	plan := m.slowPlan()
	m.stage(plan)
	m.sh("touch /var/tmp/slow-" + slow + "-preinst")
	m.submit(upgrade.Operation{ID: "damaged", Machine: m.Name(), Plan: plan})
	m.start("damaged")
	m.eventually("dpkg waits in the script", func() bool {
		_, err := m.ask("test -e /var/tmp/slow-" + slow + "-preinst-waits")
		return err == nil
	})
	m.sh("systemctl kill --kill-whom=all --signal=KILL " + unitOf("damaged"))
	path := filepath.Join(m.root, stateDir, "journal/damaged.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	whole := append([]byte(nil), data...)
	data[len(data)/2] ^= 0x10
	require.NoError(t, os.WriteFile(path, data, 0o600))

	says := func(unit string) {
		t.Helper()
		log := m.sh("journalctl --no-pager --boot -u " + unit)
		assert.Contains(t, log, "/var/lib/refit/journal/damaged.json cannot be trusted")
		assert.Contains(t, log, "look at the host, then move the file away")
	}
	m.eventually("the killed unit is gone", func() bool { return !m.working("damaged") })
	m.start("damaged")
	m.eventually("the executor has stopped", func() bool { return !m.working("damaged") })
	says(unitOf("damaged"))
	require.NoError(t, m.die())
	m.dead.Store(false)
	require.NoError(t, m.Start(m.ctx))
	m.eventually("the boot goes on without it", func() bool {
		out, _ := m.ask("systemctl is-active kubelet.service")
		return out == "active"
	})
	says("refit-resume.service")

	require.NoError(t, os.WriteFile(path, whole, 0o600)) // as it was, for the tests after this one
	m.requireOldOrNew(m.follow("damaged"), "the journal as it was")
}
