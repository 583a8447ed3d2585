package hostfake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// WithEtcd gives the host a cluster of some members that are well; the one on this host leads.
func (h *Host) WithEtcd(members int) *Host {
	h.Etcd = &upgrade.EtcdFacts{Member: "a1", Leader: "a1", Quorum: true}
	for i := range members {
		h.Etcd.Members = append(h.Etcd.Members, upgrade.EtcdMemberFacts{
			ID: fmt.Sprintf("a%d", i+1), Name: fmt.Sprintf("cp%d", i+1), Started: true, Healthy: true, Version: "3.6.4",
		})
	}
	return h
}

// WithEtcdPackage makes the member on this host one that is a package with its unit, of a version.
func (h *Host) WithEtcdPackage(version string) *Host {
	h.Packages[etcdPackage] = Package{Version: version + "-1", State: installed}
	h.Active[upgrade.UnitEtcd] = true
	for i := range h.Etcd.Members {
		h.Etcd.Members[i].Version = version
	}
	return h
}

const etcdPackage = "etcd-server"

// startEtcd is what a member does that is a package: it runs what is on disk.
func (h *Host) startEtcd() {
	for i := range h.Etcd.Members {
		if m := &h.Etcd.Members[i]; m.ID == h.Etcd.Member {
			m.Version = h.onDisk(etcdPackage)
		}
	}
}

type etcd struct{ h *Host }

// members as they are now.
func (h *Host) members() upgrade.EtcdFacts {
	seen := *h.Etcd
	seen.Members = slices.Clone(seen.Members)
	return seen
}

func (e etcd) Look(context.Context) (out *upgrade.EtcdFacts, err error) {
	err = e.h.call("etcd look", func() error {
		if e.h.Etcd != nil {
			seen := e.h.members()
			out = &seen
		}
		return nil
	})
	return out, err
}

func (e etcd) MoveLeader(_ context.Context, to string) error {
	return e.h.call("etcd leader to "+to, func() error {
		if e.h.Etcd == nil || e.h.Etcd.Leader != e.h.Etcd.Member {
			return errors.New("etcdserver: not leader")
		}
		e.h.Etcd.Leader = to
		return nil
	})
}

// Snapshot takes one for each operation, however often it is asked.
func (e etcd) Snapshot(_ context.Context, operation string) (taken upgrade.EtcdSnapshot, err error) {
	err = e.h.call("etcd snapshot", func() error {
		e.h.Effects["etcd snapshot "+operation] = 1
		taken = upgrade.EtcdSnapshot{Path: "/var/lib/refit/etcd/snapshot-" + operation + ".db", Revision: 42, SHA256: "5ca1e"}
		return nil
	})
	return taken, err
}
