package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func members(n int) *upgrade.EtcdFacts {
	e := &upgrade.EtcdFacts{Member: "a1", Leader: "a1", Quorum: true}
	for i := range n {
		id := string(rune('1' + i))
		e.Members = append(e.Members, upgrade.EtcdMemberFacts{ID: "a" + id, Name: "cp" + id, Started: true, Healthy: true, AppliedIndex: 7})
	}
	return e
}

func TestWhatAHostSeesOfEtcdIsReported(t *testing.T) {
	before := &v1alpha1.ObservedEtcd{Member: "cp1", Members: 3, Healthy: 3, Quorum: true}
	for name, tc := range map[string]struct {
		facts  func() upgrade.Facts
		want   *v1alpha1.ObservedEtcd
		doubts bool
	}{
		"all are well": {
			facts: func() upgrade.Facts { return upgrade.Facts{Etcd: members(3)} },
			want:  &v1alpha1.ObservedEtcd{Member: "cp1", Leader: true, Members: 3, Healthy: 3, Quorum: true},
		},
		"one is away, one behind, one a learner, and there is no space": {
			facts: func() upgrade.Facts {
				e := members(4)
				e.Members[1].Healthy, e.Members[2].Behind, e.Members[3].Learner, e.Leader = false, 5000, true, "a2"
				e.Alarms = []upgrade.EtcdAlarmFacts{{Member: "a2", Alarm: "NOSPACE"}}
				return upgrade.Facts{Etcd: e}
			},
			want:   &v1alpha1.ObservedEtcd{Member: "cp1", Members: 3, Healthy: 1, Learners: 1, Quorum: true, Unwell: []string{"cp2", "cp3"}, Alarms: []string{"NOSPACE on cp2"}},
			doubts: true,
		},
		"nobody could be asked: the member keeps its name": {
			facts: func() upgrade.Facts {
				return upgrade.Facts{Problems: []upgrade.Problem{{Field: "etcd", Message: "refused"}}}
			},
			want:   &v1alpha1.ObservedEtcd{Member: "cp1", Problem: "refused"},
			doubts: true,
		},
		"the host has none": {facts: func() upgrade.Facts { return upgrade.Facts{} }},
	} {
		t.Run(name, func(t *testing.T) {
			facts := tc.facts()
			got := report.Status(report.State{Base: v1alpha1.MachineStatus{Etcd: before}, Facts: &facts})
			assert.Equal(t, tc.want, got.Etcd)
			assert.Equal(t, tc.doubts, facts.EtcdInDoubt(), "it is looked at again soon")
		})
	}
	assert.Equal(t, before, report.Status(report.State{Base: v1alpha1.MachineStatus{Etcd: before}}).Etcd, "before the first probe, and while work goes on, it stays")
}

func TestAReportOfEtcdIsNewsButNotWithEveryWriteToIt(t *testing.T) {
	one, later := upgrade.Facts{Etcd: members(3)}, upgrade.Facts{Etcd: members(3)}
	for i := range later.Etcd.Members {
		later.Etcd.Members[i].AppliedIndex, later.Etcd.Members[i].DBSize = 99, 1<<20
	}
	seen := report.Status(report.State{Facts: &one})
	assert.Equal(t, report.None, report.Compare(seen, report.Status(report.State{Facts: &later})))
	later.Etcd.Members[2].Healthy = false
	assert.Equal(t, report.News, report.Compare(seen, report.Status(report.State{Facts: &later})))
}

func TestASnapshotOfEtcdIsReportedWhileItsOperationGoesOn(t *testing.T) {
	taken := &v1alpha1.EtcdSnapshot{Path: "/var/lib/refit/etcd/snapshot-a.db", Revision: 7, SHA256: "5ca1e", Time: metav1.NewTime(time.Unix(1, 0).UTC())}
	during := report.Status(report.State{Snapshot: taken})
	assert.Equal(t, taken, during.EtcdSnapshot)
	assert.Equal(t, taken, report.Status(report.State{Base: during}).EtcdSnapshot, "and stays")
	assert.Nil(t, report.Status(report.State{Base: during, NewHost: true}).EtcdSnapshot, "it is on another host")
}

func TestWhatIsReportedOfEtcdIsSmall(t *testing.T) {
	e := members(9)
	for i := range e.Members {
		e.Members[i].Name, e.Members[i].Healthy = strings.Repeat("n", 500), false
		e.Alarms = append(e.Alarms, upgrade.EtcdAlarmFacts{Member: e.Members[i].ID, Alarm: "NOSPACE"})
	}
	e.Member = ""
	facts := upgrade.Facts{Etcd: e}
	text, err := json.Marshal(report.Status(report.State{Facts: &facts}).Etcd)
	require.NoError(t, err)
	assert.Less(t, len(text), 1024)
}
