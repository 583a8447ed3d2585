package upgrade

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// crash walks random fleets, in which a hop of a control plane may break in the middle, one
// random move after another, and judges every state in words of its own.
type crash struct {
	t       *testing.T
	r       *rand.Rand
	hosts   []HostState
	context string
	moved   map[string]int
}

func ordinalOf(text string) int {
	var major, minor, patch int
	if _, err := fmt.Sscanf(text, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		return 0
	}
	return minor*100 + patch
}

func (c *crash) pick(low, high int) string {
	return fmt.Sprintf("v1.%d.%d", low+c.r.IntN(high-low+1), 1+c.r.IntN(4))
}

// fleet is one to three control planes within one minor, some of them half done, and up to
// three workers that are not too far behind, with wishes of their own.
func (c *crash) fleet(low int) {
	c.hosts = nil
	high := low + c.r.IntN(2)
	for i := range 1 + c.r.IntN(3) {
		api, wish := c.pick(low, high), v1alpha1.Versions{}
		if c.r.IntN(6) > 0 {
			wish = wishControlPlane(c.pick(low, low+3))
		}
		if c.r.IntN(2) == 0 {
			wish.Kubelet = wish.ControlPlane
		}
		h := at(fmt.Sprintf("cp-%d", i+1), c.pick(high-3, low), api, wish)
		if c.r.IntN(4) == 0 { // nothing is more than one minor behind the newest API server
			old := fmt.Sprintf("v1.%d.%d", max(high-1, minorOf(c.t, api)-1), 1)
			if ordinalOf(old) < ordinalOf(api) {
				h.Versions.ControlPlane.ControllerManager, h.Versions.ControlPlane.Scheduler = old, old
			}
		}
		h.Sidelined = c.r.IntN(8) == 0
		c.hosts = append(c.hosts, h)
	}
	for i := range c.r.IntN(4) {
		w := at(fmt.Sprintf("w%d", i+1), c.pick(high-3, low), "", wishKubelet(c.pick(low-1, low+3)))
		w.Sidelined, w.Managed = c.r.IntN(8) == 0, c.r.IntN(8) > 0
		c.hosts = append(c.hosts, w)
	}
}

// step makes one move, or says that there is none.
func (c *crash) step() bool {
	fleet := Fleet{Hosts: c.hosts, HopPatch: patches(30, 42)}
	for _, i := range c.r.Perm(len(c.hosts)) {
		h := c.hosts[i]
		if !h.Managed || h.Sidelined {
			continue
		}
		target, role, _, blocked := NextTarget(fleet, h, h.Wish)
		if blocked != nil || Arrived(target) {
			continue
		}
		after := h.After(target)
		after.First = false
		if target.ControlPlane != "" {
			c.judge(h, string(target.ControlPlane), role)
			if c.r.IntN(4) == 0 && c.moved["broken"] < 3 {
				c.moved["broken"]++
				after = h
				after.Versions = *h.Versions.DeepCopy()
				after.Versions.ControlPlane.APIServer = string(target.ControlPlane)
				after.First = role == v1alpha1.KubeadmFirst && c.r.IntN(2) == 0
			}
		}
		c.context += fmt.Sprintf("\n%s %s %+v -> %+v", h.Name, role, target.Versions, after.Versions.ControlPlane)
		c.hosts[i] = after
		requireSkew(c.t, c.hosts, c.context)
		return true
	}
	return false
}

// judge is the second opinion on a hop of a control plane.
func (c *crash) judge(h HostState, target string, role v1alpha1.KubeadmRole) {
	say := fmt.Sprintf("%s to %s as %s: %s", h.Name, target, role, c.context)
	now, minor := h.Versions.ControlPlane, minorOf(c.t, target)
	require.LessOrEqual(c.t, ordinalOf(now.APIServer), ordinalOf(target), "no API server goes back: %s", say)
	require.LessOrEqual(c.t, minor-minorOf(c.t, now.APIServer), 1, "an API server moves by one minor: %s", say)
	require.LessOrEqual(c.t, minor-minorOf(c.t, now.ControllerManager), 1, "a controller manager moves by one minor: %s", say)
	through := false
	for _, peer := range c.hosts {
		if peer.Name == h.Name || peer.APIServer == NoAPIServer {
			continue
		}
		its := peer.Versions.ControlPlane
		require.LessOrEqual(c.t, ordinalOf(its.APIServer), ordinalOf(target), "%s is not gone below: %s", peer.Name, say)
		require.LessOrEqual(c.t, minor-minorOf(c.t, its.ControllerManager), 1, "the controller manager of %s keeps up: %s", peer.Name, say)
		through = through || its.APIServer == target && its.ControllerManager == target
	}
	require.Equal(c.t, !through, role == v1alpha1.KubeadmFirst, "the first is who has nobody before it: %s", say)
}

// open names a machine with work that skew allows.
func (c *crash) open() string {
	oldest, newest := 1_000_000, 0
	for _, h := range c.hosts {
		if h.APIServer != NoAPIServer {
			oldest, newest = min(oldest, ordinalOf(h.Versions.ControlPlane.APIServer)), max(newest, ordinalOf(h.Versions.ControlPlane.APIServer))
		}
	}
	for _, h := range c.hosts {
		if !h.Managed || h.Sidelined {
			continue
		}
		wish, kubelet := ordinalOf(string(h.Wish.Kubelet)), ordinalOf(h.Versions.Kubelet)
		if h.APIServer == NoAPIServer && wish > kubelet && wish/100 <= oldest/100 && newest/100-wish/100 <= 3 {
			return h.Name + " with its kubelet"
		}
		if h.APIServer != NoAPIServer && (wish == 0 || wish >= kubelet) && !c.heldByPerson() && c.mayHop(h) {
			return h.Name + " with its control plane"
		}
	}
	return ""
}

// heldByPerson says that a machine which nobody moves has begun a hop: that is waited for, whoever is next.
func (c *crash) heldByPerson() bool {
	return slices.ContainsFunc(c.hosts, func(h HostState) bool {
		return h.Sidelined && h.APIServer != NoAPIServer && h.Versions.ControlPlane.ControllerManager != h.Versions.ControlPlane.APIServer
	})
}

// mayHop says that some version is a legal hop of a control plane to, or towards, its wish.
func (c *crash) mayHop(h HostState) bool {
	now, wish := h.Versions.ControlPlane, ordinalOf(string(h.Wish.ControlPlane))
	for _, target := range []int{ordinalOf(now.APIServer), wish, ordinalOf(release(minorOf(c.t, now.APIServer) + 1))} {
		done := target == ordinalOf(now.APIServer) && target == ordinalOf(now.ControllerManager)
		if done || target > wish || target < ordinalOf(now.APIServer) || target/100-ordinalOf(now.ControllerManager)/100 > 1 {
			continue
		}
		if wish/100-target/100 > 0 && target == ordinalOf(now.APIServer) && ordinalOf(now.ControllerManager) == target {
			continue
		}
		legal := true
		for _, o := range c.hosts {
			if o.APIServer != NoAPIServer && o.Name != h.Name {
				its := o.Versions.ControlPlane
				legal = legal && ordinalOf(its.APIServer) <= target && target/100-ordinalOf(its.ControllerManager)/100 <= 1
			}
			legal = legal && (target/100 == minorOf(c.t, now.APIServer) || target/100-minorOf(c.t, o.Versions.Kubelet) <= 3)
		}
		if legal {
			return true
		}
	}
	return false
}

// Whatever breaks on the way, and whatever the machines wish for: no component jumps, nothing
// goes below a peer, and the fleet moves as long as there is something that it may do.
func TestAFleetWhoseHopsBreakNeitherJumpsNorStandsStill(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	moves, broken := 0, 0
	for i := range 6000 {
		c := &crash{t: t, r: r, moved: map[string]int{}}
		c.fleet(33 + r.IntN(3))
		c.context = fmt.Sprintf("case %d", i)
		for _, h := range c.hosts {
			c.context += fmt.Sprintf("\n%s kubelet %s, control plane %+v, wish %+v, sidelined %t, managed %t", h.Name, h.Versions.Kubelet, h.Versions.ControlPlane, h.Wish, h.Sidelined, h.Managed)
		}
		for n := 0; c.step(); n++ {
			require.Less(t, n, 60, "it comes to an end: %s", c.context)
			moves++
		}
		if left := c.open(); left != "" {
			_, blocked := Hops(Fleet{Hosts: c.hosts, HopPatch: patches(30, 42)})
			for name, b := range blocked {
				c.context += fmt.Sprintf("\n%s: %v", name, b)
			}
			require.Empty(t, left, "nobody moves though it could: %s", c.context)
		}
		broken += c.moved["broken"]
	}
	require.Greater(t, moves, 6000)
	require.Greater(t, broken, 1000)
}
