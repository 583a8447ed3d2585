package upgrade

import "time"

// EtcdUnitFacts is an etcd that runs as a unit of the host; nil where it has none.
type EtcdUnitFacts struct {
	Unit   string `json:"unit"`
	Active bool   `json:"active,omitempty"`
	// Installed is the version of the program that a restart would start.
	Installed string `json:"installed,omitempty"`
	// Endpoint is where its member listens for clients, by what its process was started with.
	Endpoint string `json:"endpoint,omitempty"`
}

// EtcdFacts is what the members of an etcd cluster say of themselves and of each other, asked
// from one host with that host's own certificate.
type EtcdFacts struct {
	// Member is the id of the member that runs on this host; "" where the control plane stores elsewhere.
	Member string `json:"member,omitempty"`
	// Members of the cluster, those that do not answer too.
	Members []EtcdMemberFacts `json:"members,omitempty"`
	// Leader is the id of the member that leads; "" when none does.
	Leader string `json:"leader,omitempty"`
	// Quorum says that a read that takes a quorum was answered.
	Quorum bool `json:"quorum,omitempty"`
	// ClusterVersion is what the members have agreed on. Data of a newer one is read by no older member.
	ClusterVersion string           `json:"clusterVersion,omitempty"`
	Alarms         []EtcdAlarmFacts `json:"alarms,omitempty"`
}

// EtcdMemberFacts is one member.
type EtcdMemberFacts struct {
	ID   string `json:"id"` // in hex, as etcdctl has it
	Name string `json:"name,omitempty"`
	// Started is false for a member that was added and that has yet to run for the first time.
	Started bool `json:"started,omitempty"`
	// Learner has no vote.
	Learner bool `json:"learner,omitempty"`
	// Healthy says that its own endpoint answered, with a leader; Problem why not.
	Healthy bool   `json:"healthy,omitempty"`
	Problem string `json:"problem,omitempty"`
	Version string `json:"version,omitempty"`
	// AppliedIndex is the last entry of the log that it has applied, and Behind how many more the
	// leader had when it was asked, which was before.
	AppliedIndex uint64 `json:"appliedIndex,omitempty"`
	Behind       uint64 `json:"behind,omitempty"`
	// DBSize is the size of its database on disk, in bytes.
	DBSize int64 `json:"dbSize,omitempty"`
}

// EtcdAlarmFacts is an alarm that a member has raised: NOSPACE or CORRUPT.
type EtcdAlarmFacts struct {
	Member string `json:"member"`
	Alarm  string `json:"alarm"`
}

// EtcdSnapshotRecord says where the newest snapshot of etcd is, as JSON of an EtcdSnapshot.
const EtcdSnapshotRecord = "/var/lib/refit/etcd/latest.json"

// EtcdSnapshot is a snapshot that was taken and verified.
type EtcdSnapshot struct {
	// Path on the host that took it.
	Path string `json:"path"`
	// Revision of the store, and the SHA-256 of what is in the file, without the digest at its end.
	Revision int64     `json:"revision"`
	SHA256   string    `json:"sha256"`
	Size     int64     `json:"size"`
	Time     time.Time `json:"time"`
}

// Own is the member of this host; nil where there is none, or it is not in the list.
func (e EtcdFacts) Own() *EtcdMemberFacts { return e.member(e.Member) }

func (e EtcdFacts) member(id string) *EtcdMemberFacts {
	for i := range e.Members {
		if id != "" && e.Members[i].ID == id {
			return &e.Members[i]
		}
	}
	return nil
}

// Label is a member's name for people; one that has never run has none.
func (m EtcdMemberFacts) Label() string {
	if m.Name == "" {
		return m.ID
	}
	return m.Name
}
