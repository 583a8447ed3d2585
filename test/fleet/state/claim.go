package state

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/refit-dev/refit/test/fleet/hosts"
)

// runDir holds what all fleets of the machine share until the next boot of the machine.
const runDir = "/run/refit-fleet"

// machineLock is taken in turn by all fleets of the machine, whatever their state directory.
var machineLock = filepath.Join(runDir, "lock")

// kernelSettings remembers the machine's own sysctls while any fleet is up.
var kernelSettings = filepath.Join(runDir, "sysctls.json")

// Claim gives the fleet an index of its own, records it, and creates the switch, all under the machine's lock: the
// interface named after the index, with its owner as alias, is the claim that every fleet can see.
func (f *Fleet) Claim(ctx context.Context, fresh bool) error {
	unlock, err := hosts.Lock(ctx, machineLock)
	if err != nil {
		return err
	}
	defer unlock()
	if err := hosts.RecordKernelSettings(kernelSettings); err != nil {
		return err
	}
	owner, err := hosts.LinkOwner(ctx, f.Site().Link())
	if err != nil {
		return err
	}
	// Another fleet took the index while this one was not up, for instance over a reboot of the machine.
	lost := owner != "" && owner != f.Site().Owner()
	if lost && slices.ContainsFunc(f.Hosts, func(h Host) bool { return h.Joined }) {
		return fmt.Errorf("the network of fleet %s is now used by %s, and its cluster cannot move to another one: take one of the two down",
			f.Name, owner)
	}
	if fresh || lost {
		if f.Index, err = f.freeIndex(ctx); err != nil {
			return err
		}
	}
	if err := f.Save(); err != nil {
		return err
	}
	return f.Site().EnsureSwitch(ctx)
}

// Release takes the fleet's claim back and, with the last fleet, restores the machine's settings. remove runs under the
// machine's lock, so that no other fleet can take the index before it is clean.
func (f *Fleet) Release(ctx context.Context, remove func() error) error {
	unlock, err := hosts.Lock(ctx, machineLock)
	if err != nil {
		return err
	}
	defer unlock()
	if err := remove(); err != nil {
		return err
	}
	for i := range hosts.MaxSites {
		if owner, err := hosts.LinkOwner(ctx, hosts.Site{Index: i}.Link()); err != nil || owner != "" {
			return err
		}
	}
	return hosts.RestoreKernelSettings(kernelSettings)
}

func (f *Fleet) freeIndex(ctx context.Context) (int, error) {
	used, err := recordedIndexes(f.Name)
	if err != nil {
		return 0, err
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return 0, fmt.Errorf("reading the addresses of this machine: %w", err)
	}
	return chooseIndex(f.Name, func(i int) bool {
		site := hosts.Site{Index: i}
		owner, err := hosts.LinkOwner(ctx, site.Link())
		return used[i] || err != nil || owner != "" || overlaps(addresses, site.Subnet(), site.PodSubnet())
	})
}

// chooseIndex starts at a place that depends on the name, so that a fleet that comes and goes tends to keep its addresses.
func chooseIndex(name string, taken func(int) bool) (int, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	for i := range hosts.MaxSites {
		if c := (int(h.Sum32()%hosts.MaxSites) + i) % hosts.MaxSites; !taken(c) {
			return c, nil
		}
	}
	return 0, fmt.Errorf("all %d networks for fleets are in use on this machine: take a fleet down (see: fleet list)", hosts.MaxSites)
}

func recordedIndexes(except string) (map[int]bool, error) {
	names, err := List()
	if err != nil {
		return nil, err
	}
	used := map[int]bool{}
	for _, n := range names {
		if n == except {
			continue
		}
		other, err := Load(n)
		if err != nil {
			return nil, err
		}
		used[other.Index] = true
	}
	return used, nil
}

func overlaps(addresses []net.Addr, subnets ...netip.Prefix) bool {
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		for _, s := range subnets {
			if s.Overlaps(prefix) {
				return true
			}
		}
	}
	return false
}
