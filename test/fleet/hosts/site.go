package hosts

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

const (
	// MaxSites is how many fleets fit on one machine: each takes the /24 10.(200+index).0.0 and the /16 10.(100+index).0.0.
	MaxSites = 50

	hostNet = 200
	podNet  = 100
)

// Site is the footprint of one fleet on the machine: everything it owns there is named after Index or lies below Dir.
type Site struct {
	Index int
	Dir   string
}

// Gateway is the machine's own address in the fleet's network: default route, mirror, registry and API endpoint.
func (s Site) Gateway() netip.Addr { return s.address(1) }

// Subnet is the network of the fleet's hosts.
func (s Site) Subnet() netip.Prefix { return netip.PrefixFrom(s.address(0), 24) }

// PodSubnet is the network that all hosts' pod networks are part of.
func (s Site) PodSubnet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(podNet + s.Index), 0, 0}), 16)
}

// ServiceSubnet is the network of Service addresses; it exists only inside the hosts, so all fleets share it.
func (s Site) ServiceSubnet() netip.Prefix { return netip.MustParsePrefix("10.96.0.0/16") }

// Link is the machine's interface into the fleet's network.
func (s Site) Link() string { return fmt.Sprintf("rf%d", s.Index) }

// Owner is the alias of Link: it tells whose the index is, also after a crash.
func (s Site) Owner() string { return "refit-fleet:" + s.Dir }

func (s Site) address(last byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(hostNet + s.Index), 0, last})
}

func (s Site) switchNetns() string { return s.Link() + "-switch" }

func (s Site) cgroup() string { return fmt.Sprintf("refit-fleet-%d", s.Index) }

// DaemonCgroup is the group of the fleet's daemon.
func (s Site) DaemonCgroup() string { return s.cgroup() + "/daemon" }

// Host is one machine of a fleet. Number is the last part of its address.
type Host struct {
	Site   Site
	Name   string
	Number int
	// Layers are the read-only lower directories of the host's disk, top first.
	Layers []string
}

// Address is where the other hosts and the machine reach the host.
func (h Host) Address() netip.Addr { return h.Site.address(byte(h.Number)) }

// PodSubnet is the part of the fleet's pod network that is behind this host.
func (h Host) PodSubnet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(podNet + h.Site.Index), byte(h.Number), 0}), 24)
}

// RootDir is the host's file system as the machine sees it, there as long as the fleet is up, also while the host is dead.
func (h Host) RootDir() string { return filepath.Join(h.dir(), "root") }

// ConsoleLog is the file that receives what the host prints on its console.
func (h Host) ConsoleLog() string { return filepath.Join(h.dir(), "console.log") }

func (h Host) dir() string { return filepath.Join(h.Site.Dir, "hosts", h.Name) }

func (h Host) netns() string { return h.Site.Link() + "-" + h.Name }

func (h Host) machineName() string { return h.Site.Link() + "-" + h.Name }

func (h Host) cgroup() string { return filepath.Join(h.Site.cgroup(), h.Name) }
