package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

const netnsDir = "/run/netns"

// The bridge lives in a namespace of its own: the machine's packet filter never sees the hosts' traffic, and removing
// the namespace removes bridge and ports, whatever state they are in.

// EnsureSwitch creates the fleet's switch and the machine's interface into it; safe to repeat.
func (s Site) EnsureSwitch(ctx context.Context) error {
	if !netnsExists(s.switchNetns()) {
		if err := s.createSwitch(ctx); err != nil {
			return fmt.Errorf("creating the switch of the fleet: %w", err)
		}
	}
	if _, err := net.InterfaceByName(s.Link()); err == nil {
		return nil
	}
	err := runAll(ctx, "ip",
		words("-n %s link add machine type veth peer name %s netns %d", s.switchNetns(), s.Link(), os.Getpid()),
		words("-n %s link set machine master br0 up", s.switchNetns()),
		append(words("link set %s alias", s.Link()), s.Owner()),
		words("addr add %s/24 dev %s", s.Gateway(), s.Link()),
		words("link set %s up", s.Link()),
	)
	if err != nil {
		return fmt.Errorf("connecting this machine to the fleet's switch: %w", err)
	}
	return nil
}

func (s Site) createSwitch(ctx context.Context) error {
	ns := s.switchNetns()
	return runAll(ctx, "ip",
		words("netns add %s", ns),
		words("-n %s link set lo up", ns),
		words("-n %s link add br0 type bridge", ns),
		words("-n %s link set br0 up", ns),
	)
}

// RoutePods lets this machine reach the pods of the hosts.
func (s Site) RoutePods(ctx context.Context, hosts []Host) error {
	for _, h := range hosts {
		if _, err := run(ctx, "ip", words("route replace %s via %s dev %s", h.PodSubnet(), h.Address(), s.Link())...); err != nil {
			return fmt.Errorf("routing to the pods of host %s: %w", h.Name, err)
		}
	}
	return nil
}

// connect gives the host a fresh network namespace: a boot starts without interfaces, rules or connections of the last one.
func (h Host) connect(ctx context.Context, peers []Host) error {
	if err := h.disconnect(ctx); err != nil {
		return err
	}
	ns := h.netns()
	lines := [][]string{
		words("netns add %s", ns),
		words("-n %s link set lo up", ns),
		words("-n %s link add eth0 type veth peer name %s netns %s", ns, h.port(), h.Site.switchNetns()),
		words("-n %s link set %s master br0 up", h.Site.switchNetns(), h.port()),
		words("-n %s addr add %s/24 dev eth0", ns, h.Address()),
		words("-n %s link set eth0 up", ns),
		words("-n %s route add default via %s", ns, h.Site.Gateway()),
	}
	for _, p := range peers {
		if p.Name != h.Name {
			lines = append(lines, words("-n %s route replace %s via %s", ns, p.PodSubnet(), p.Address()))
		}
	}
	lines = append(lines, words("netns exec %s sysctl -q -w net.ipv4.ip_forward=1", ns))
	if err := runAll(ctx, "ip", lines...); err != nil {
		return fmt.Errorf("connecting host %s: %w", h.Name, err)
	}
	return nil
}

// unplug cuts the cable. A host that dies says nothing: were its processes killed with the cable in, the kernel would
// still close their connections politely, and nobody would ever see a silent peer.
func (h Host) unplug(ctx context.Context) error {
	if !netnsExists(h.netns()) || !netnsExists(h.Site.switchNetns()) {
		return nil
	}
	if _, err := run(ctx, "ip", words("-n %s link delete %s", h.Site.switchNetns(), h.port())...); err != nil &&
		!strings.Contains(err.Error(), "Cannot find device") {
		return fmt.Errorf("unplugging host %s: %w", h.Name, err)
	}
	return nil
}

func (h Host) disconnect(ctx context.Context) error {
	if !netnsExists(h.netns()) {
		return nil
	}
	if err := h.unplug(ctx); err != nil {
		return err
	}
	if _, err := run(ctx, "ip", "netns", "delete", h.netns()); err != nil {
		return fmt.Errorf("removing the network of host %s: %w", h.Name, err)
	}
	return nil
}

// port is the host's interface on the switch; interface names end at 15 bytes, host names are checked for it.
func (h Host) port() string { return h.Name }

// RouteTo tells a running host about peers that joined after its boot.
func (h Host) RouteTo(ctx context.Context, peers []Host) error {
	if !netnsExists(h.netns()) {
		return nil
	}
	for _, p := range peers {
		if p.Name == h.Name {
			continue
		}
		if _, err := run(ctx, "ip", words("-n %s route replace %s via %s", h.netns(), p.PodSubnet(), p.Address())...); err != nil {
			return fmt.Errorf("telling host %s the way to %s: %w", h.Name, p.Name, err)
		}
	}
	return nil
}

// removeNetwork takes away every namespace and interface named after the site's index.
func (s Site) removeNetwork(ctx context.Context) error {
	for _, ns := range s.netnses() {
		if _, err := run(ctx, "ip", "netns", "delete", ns); err != nil {
			return fmt.Errorf("removing network namespace %s: %w", ns, err)
		}
	}
	if _, err := net.InterfaceByName(s.Link()); err != nil {
		return nil //nolint:nilerr // it is gone already
	}
	// Its peer went with the switch; the kernel removes the pair a moment later by itself.
	if _, err := run(ctx, "ip", "link", "delete", s.Link()); err != nil && !strings.Contains(err.Error(), "Cannot find device") {
		return fmt.Errorf("removing interface %s: %w", s.Link(), err)
	}
	return nil
}

func (s Site) netnses() []string {
	found, _ := filepath.Glob(filepath.Join(netnsDir, s.Link()+"-*")) // the pattern is ours and well formed
	names := make([]string, 0, len(found))
	for _, f := range found {
		names = append(names, filepath.Base(f))
	}
	return names
}

func netnsExists(name string) bool {
	_, err := os.Stat(filepath.Join(netnsDir, name))
	return err == nil
}

// LinkOwner tells whose a fleet interface of this machine is; empty if there is none.
func LinkOwner(ctx context.Context, link string) (string, error) {
	if _, err := net.InterfaceByName(link); err != nil {
		return "", nil //nolint:nilerr // no such interface is the answer, not a failure
	}
	out, err := run(ctx, "ip", "-json", "link", "show", "dev", link)
	if err != nil {
		return "", fmt.Errorf("reading the owner of interface %s: %w", link, err)
	}
	var links []struct {
		Alias string `json:"ifalias"`
	}
	if err := json.Unmarshal(out, &links); err != nil || len(links) != 1 {
		return "", fmt.Errorf("reading the owner of interface %s: unexpected answer of ip: %s", link, out)
	}
	if links[0].Alias == "" {
		return "unknown", nil
	}
	return links[0].Alias, nil
}
