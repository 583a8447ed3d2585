package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// Look asks every member at its own endpoint. Nil says that this host has no etcd. What one
// member does not say is said of it; the error is for when no list of members came.
func (e *Etcd) Look(ctx context.Context) (*upgrade.EtcdFacts, error) {
	a, err := e.Access(ctx)
	if err != nil || a == nil {
		return nil, err
	}
	client, err := e.connect(a, a.Endpoints...)
	if err != nil {
		return nil, err
	}
	defer client.Close() //nolint:errcheck // nothing is written through it
	out := &upgrade.EtcdFacts{}
	leaderAt, err := e.begin(ctx, client, a, out)
	if err != nil {
		return nil, err
	}
	members, err := e.members(ctx, client)
	if err != nil {
		return nil, err
	}
	out.Members = make([]upgrade.EtcdMemberFacts, len(members))
	var wait sync.WaitGroup
	alarms := make([][]upgrade.EtcdAlarmFacts, len(members))
	for i, m := range members {
		wait.Go(func() { out.Members[i], alarms[i] = e.ask(ctx, a, m, out.Member) })
	}
	wait.Go(func() { out.Quorum = e.read(ctx, client) == nil })
	wait.Go(func() { out.ClusterVersion = e.clusterVersion(ctx, a) })
	wait.Wait()
	out.Alarms = distinct(alarms)
	for i := range out.Members {
		m := &out.Members[i]
		if m.AppliedIndex > 0 && m.AppliedIndex < leaderAt {
			m.Behind = leaderAt - m.AppliedIndex
		}
	}
	return out, nil
}

// begin asks the first endpoint that answers who it is and who leads, and how far the log is:
// whoever is asked later must have applied at least that.
func (e *Etcd) begin(ctx context.Context, client *clientv3.Client, a *Access, out *upgrade.EtcdFacts) (uint64, error) {
	var problems error
	for _, endpoint := range a.Endpoints {
		status, err := e.status(ctx, client, endpoint)
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		out.Leader = idText(status.Leader)
		if a.Member {
			out.Member = idText(status.Header.MemberId)
		}
		return status.RaftIndex, nil
	}
	return 0, problems
}

func (e *Etcd) status(ctx context.Context, client *clientv3.Client, endpoint string) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	status, err := client.Status(ctx, endpoint)
	if err != nil {
		return nil, fmt.Errorf("asking etcd at %s how it is: %w", endpoint, err)
	}
	return status, nil
}

// members by name. Without a quorum the list is the one that the asked member has.
func (e *Etcd) members(ctx context.Context, client *clientv3.Client) ([]*pb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	answer, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil, fmt.Errorf("listing the members of etcd: %w", err)
	}
	slices.SortFunc(answer.Members, func(a, b *pb.Member) int {
		if a.Name != b.Name {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return answer.Members, nil
}

// ask asks one member at its own endpoint, and has it read with a quorum: one that is cut off
// from the others answers for itself well enough. A learner serves no such read.
func (e *Etcd) ask(ctx context.Context, a *Access, m *pb.Member, own string) (out upgrade.EtcdMemberFacts, alarms []upgrade.EtcdAlarmFacts) {
	out = upgrade.EtcdMemberFacts{ID: idText(m.ID), Name: m.Name, Learner: m.IsLearner, Started: m.Name != ""}
	if !out.Started {
		out.Problem = "it was added, and has not run yet"
		return out, nil
	}
	urls := m.ClientURLs
	if out.ID == own {
		urls = append(slices.Clone(a.Endpoints), urls...)
	}
	if len(urls) == 0 {
		out.Problem = "it names no address for clients"
		return out, nil
	}
	client, status, err := e.reach(ctx, a, m, urls)
	if err != nil {
		out.Problem = err.Error()
		return out, nil
	}
	defer client.Close() //nolint:errcheck // nothing is written through it
	out.Version, out.AppliedIndex, out.DBSize = status.Version, status.RaftAppliedIndex, status.DbSize
	alarms = alarmsIn(status.Errors)
	switch {
	case status.Leader == 0:
		out.Problem = "it knows no leader"
	case !m.IsLearner:
		if err := e.read(ctx, client); err != nil {
			out.Problem = err.Error()
		}
	}
	out.Healthy = out.Problem == ""
	return out, alarms
}

// reach is a way to a member by the first of its addresses at which it is the one that answers.
// Members that were told no address of their own name the default one, which on each host is
// that host's own member: an answer of somebody else's says nothing.
func (e *Etcd) reach(ctx context.Context, a *Access, m *pb.Member, urls []string) (*clientv3.Client, *clientv3.StatusResponse, error) {
	var problems error
	for _, url := range urls {
		client, err := e.connect(a, url)
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		status, err := e.status(ctx, client, url)
		if err == nil && status.Header.MemberId == m.ID {
			return client, status, nil
		}
		if err == nil {
			err = fmt.Errorf("at its address for clients, %s, member %s answers in its place: start it with --advertise-client-urls of its own", url, idText(status.Header.MemberId))
		}
		problems = errors.Join(problems, err, client.Close())
	}
	return nil, nil, problems
}

// distinct are the alarms that any member told of; each tells of all.
func distinct(told [][]upgrade.EtcdAlarmFacts) []upgrade.EtcdAlarmFacts {
	var out []upgrade.EtcdAlarmFacts
	for _, alarm := range slices.Concat(told...) {
		if !slices.Contains(out, alarm) {
			out = append(out, alarm)
		}
	}
	return out
}

// maxVersion is more than any answer at /version has.
const maxVersion = 1 << 12

// clusterVersion is told over HTTP only; "" where it is not.
func (e *Etcd) clusterVersion(ctx context.Context, a *Access) string {
	config, err := e.tls(a)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Endpoints[0]+"/version", nil)
	if err != nil {
		return ""
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, Proxy: nil} // never through a proxy: it holds the cluster
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxVersion))
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return clusterVersionIn(body)
}

func clusterVersionIn(body []byte) string {
	var said struct {
		Cluster string `json:"etcdcluster"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	if _, ok := upgrade.ParseRelease(said.Cluster); !ok {
		return "" // "not_decided" of one that has just begun
	}
	return said.Cluster
}

// idText is an id as etcdctl prints it; "" for none.
func idText(id uint64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatUint(id, 16)
}
