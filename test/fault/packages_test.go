package fault

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// requireOldOrNew says that the host is whole, and what the record says it is.
func (m *machine) requireOldOrNew(rec journal.Record, where string) {
	m.t.Helper()
	version := m.slowAt()
	switch rec.State {
	case journal.Successful:
		require.Equal(m.t, "2.0", version, where)
	default:
		require.Equal(m.t, "1.0", version, "%s: %s", where, rec.Message)
		require.NotEmpty(m.t, rec.Reason)
		require.True(m.t, rec.RolledBack || strings.Contains(rec.Message, "nothing was changed"), rec.Message)
	}
}

// A real dpkg is killed in a real transaction: alone, together with everything that the
// executor runs, or with the host. A maintainer script that waits says where it is.
func TestAPackageManagerKilledAmidATransactionLeavesWholePackages(t *testing.T) {
	m := realHost(t)
	scripts := []struct{ script, where string }{
		{slow + "-preinst", "before anything is unpacked"},
		{slow + "-postrm", "in unpack: the files are there, the old ones not yet gone"},
		{slow + "-postinst", "in the first postinst, before the second"},
		{quick + "-postinst", "in the last postinst"},
	}
	kills := map[string]func(m *machine, id string){
		"dpkg": func(m *machine, _ string) {
			m.sh("for p in /proc/[0-9]*; do if [ \"$(readlink $p/exe)\" = /usr/bin/dpkg ]; then kill -KILL ${p#/proc/}; fi; done")
		},
		"the executor with all that it runs": func(m *machine, id string) {
			m.sh("systemctl kill --kill-whom=all --signal=KILL " + unitOf(id))
		},
		"the host": func(m *machine, _ string) { require.NoError(m.t, m.die()) },
	}
	n := 0
	for name, kill := range kills {
		for i, s := range scripts {
			if sample := map[string]int{"dpkg": 1, "the executor with all that it runs": 2, "the host": -1}; !exhaustive() && sample[name] != i {
				continue
			}
			n++
			t.Run(name+" "+s.where, func(t *testing.T) {
				m.t = t
				plan := m.slowPlan()
				m.stage(plan)
				id := fmt.Sprint("dpkg-", n)
				m.sh("touch /var/tmp/slow-" + s.script)
				m.submit(upgrade.Operation{ID: id, Machine: m.Name(), Plan: plan})
				m.start(id)
				m.eventually("dpkg waits in the script", func() bool {
					_, err := m.ask("test -e /var/tmp/slow-" + s.script + "-waits")
					return err == nil
				})
				kill(m, id)
				rec := m.follow(id)
				m.requireOldOrNew(rec, s.where)
				t.Logf("%s: %s %s", s.where, rec.State, rec.Message)
			})
		}
	}
	require.Positive(t, n)
}

// A disk fills up: where packages are staged nothing is begun; where they are unpacked
// they go back; where the journal is, the work stops and goes on when there is room.
func TestAFullDiskIsRefusedUndoneOrWaitedFor(t *testing.T) {
	m := realHost(t)
	small := func(dir, size string) {
		m.sh(fmt.Sprintf("mkdir -p %[1]s; mount -t tmpfs -o mode=700,size=%[2]s none %[1]s", dir, size))
		m.t.Cleanup(func() { m.sh("umount " + dir) })
	}
	t.Run("at stage", func(t *testing.T) {
		m.t = t
		plan := window(t, before, after)
		small(stateDir+"/stage", "1m")
		data, err := upgrade.MarshalStable(plan)
		require.NoError(t, err)
		m.write("/run/plan.json", string(data))
		out, err := m.ask("refit-executor stage --plan /run/plan.json --output /run/staged.json --log-level error 2>&1; echo code $?")
		require.NoError(t, err)
		assert.NotContains(t, out, "code 0")
		assert.Regexp(t, `(?i)space|room`, out)
		assert.Contains(t, out, stateDir+"/stage", "it says where")
	})
	t.Run("at unpack", func(t *testing.T) {
		m.t = t
		plan := m.slowPlan()
		m.stage(plan)
		m.sh("rm -r /opt/" + quick)
		small("/opt/"+quick, "1m")
		m.sh("dpkg -i /var/cache/apt/archives/" + quick + "_1.0_all.deb >/dev/null")
		m.submit(upgrade.Operation{ID: "full-unpack", Machine: m.Name(), Plan: plan})
		m.start("full-unpack")
		rec := m.follow("full-unpack")
		require.Equal(t, journal.Failed, rec.State)
		assert.Contains(t, rec.Message, "No space left on device")
		m.requireOldOrNew(rec, "full")
	})
	t.Run("at a write of the journal", func(t *testing.T) {
		m.t = t
		plan := m.slowPlan()
		m.stage(plan)
		journalDir := stateDir + "/journal"
		m.sh(fmt.Sprintf("rm -rf %[1]s; mkdir -m 700 %[1]s", "/run/journal"))
		small("/run/journal", "64k")
		m.sh(fmt.Sprintf("mount --bind /run/journal %s", journalDir))
		t.Cleanup(func() { m.sh("umount " + journalDir) })
		m.sh("touch /var/tmp/slow-" + slow + "-preinst")
		m.submit(upgrade.Operation{ID: "full-journal", Machine: m.Name(), Plan: plan})
		m.start("full-journal")
		m.eventually("dpkg waits in the script", func() bool {
			_, err := m.ask("test -e /var/tmp/slow-" + slow + "-preinst-waits")
			return err == nil
		})
		m.sh("head -c 100000 /dev/zero >/run/journal/filler 2>/dev/null || true; pkill -KILL -f 'sleep 600'")
		m.eventually("the executor has stopped", func() bool { return !m.working("full-journal") })
		out := m.sh("refit-executor status full-journal -o json")
		assert.Contains(t, out, `"state": "Open"`, "stopped before its next effect, and not failed")
		assert.Contains(t, m.sh("journalctl --no-pager -u "+unitOf("full-journal")), "no space left on device")
		m.sh("rm /run/journal/filler")
		m.start("full-journal")
		m.eventually("the executor has ended", func() bool { return !m.working("full-journal") })
		assert.Contains(t, m.sh("refit-executor status full-journal"), "full-journal  Successful")
		assert.Equal(t, "2.0", m.slowAt())
	})
}
