package state

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/fleet/hosts"
)

func TestAFleetIsReadBackAsItWasSaved(t *testing.T) {
	t.Setenv("REFIT_FLEET_STATE", t.TempDir())
	want := &Fleet{Name: "demo", Index: 3, Kubernetes: "v1.36.3", Containerd: "v1.7.35", AlsoKubernetes: []string{"v1.37.2"},
		Layers: []string{"/a", "/b"}, Images: []Image{{Ref: "r", Tar: "t"}}}
	require.NoError(t, want.AddHosts(1, 2))
	want.Host("cp-1").Joined = true
	require.NoError(t, want.Save())

	got, err := Load("demo")
	require.NoError(t, err)
	assert.Equal(t, want, got)
	names, err := List()
	require.NoError(t, err)
	assert.Equal(t, []string{"demo"}, names)
}

func TestLoadingRefusesWhatItCannotUse(t *testing.T) {
	root := t.TempDir()
	t.Setenv("REFIT_FLEET_STATE", root)
	_, err := Load("absent")
	require.ErrorIs(t, err, ErrUnknown)
	_, err = Load("../etc")
	require.ErrorContains(t, err, "fleet name")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "torn"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "torn", fileName), []byte(`{"name": "to`), 0o644))
	_, err = Load("torn")
	require.ErrorContains(t, err, "torn/fleet.json")
}

func TestFleetNamesAreChecked(t *testing.T) {
	for name, ok := range map[string]bool{
		"demo": true, "a": true, "a-1": true, "twenty-characters-xxx": false, "-a": false, "a-": false, "A": false, "": false, "a/b": false, "a.b": false,
	} {
		assert.Equal(t, ok, CheckName(name) == nil, "name %q", name)
	}
}

func TestAddingHostsKeepsThoseThatAreThere(t *testing.T) {
	f := &Fleet{}
	require.NoError(t, f.AddHosts(1, 1))
	f.Host("worker-1").Joined = true
	require.NoError(t, f.AddHosts(3, 2))

	var names []string
	numbers := map[int]bool{}
	for _, h := range f.Hosts {
		names = append(names, h.Name)
		assert.False(t, numbers[h.Number], "two hosts have number %d", h.Number)
		numbers[h.Number] = true
		assert.LessOrEqual(t, len(h.Name), 15, "a network interface is named after the host")
	}
	assert.ElementsMatch(t, []string{"cp-1", "cp-2", "cp-3", "worker-1", "worker-2"}, names)
	assert.True(t, f.Host("worker-1").Joined)
	assert.Nil(t, f.Host("worker-3"))

	require.NoError(t, f.AddHosts(1, 0), "fewer than there are is not an order to remove any")
	assert.Len(t, f.Hosts, 5)
	require.ErrorContains(t, f.AddHosts(0, 1), "control planes")
	require.ErrorContains(t, f.AddHosts(1, 101), "workers")
}

func TestAnIndexIsFreeAndStaysTheSameForAName(t *testing.T) {
	nobody := func(int) bool { return false }
	first, err := chooseIndex("demo", nobody)
	require.NoError(t, err)
	again, err := chooseIndex("demo", nobody)
	require.NoError(t, err)
	assert.Equal(t, first, again)

	second, err := chooseIndex("demo", func(i int) bool { return i == first })
	require.NoError(t, err)
	assert.Equal(t, (first+1)%hosts.MaxSites, second)

	last := (first + hosts.MaxSites - 1) % hosts.MaxSites
	got, err := chooseIndex("demo", func(i int) bool { return i != last })
	require.NoError(t, err)
	assert.Equal(t, last, got, "every index is tried")

	_, err = chooseIndex("demo", func(int) bool { return true })
	require.ErrorContains(t, err, "take a fleet down")
}

func TestNetworksOfTheMachineAreAvoided(t *testing.T) {
	office := []net.Addr{&net.IPNet{IP: net.IPv4(10, 107, 3, 4), Mask: net.CIDRMask(20, 32)}}
	taken, free := hosts.Site{Index: 7}, hosts.Site{Index: 8}
	assert.True(t, overlaps(office, taken.Subnet(), taken.PodSubnet()))
	assert.False(t, overlaps(office, free.Subnet(), free.PodSubnet()))
}

func TestASecondUpOfAFleetIsKeptOut(t *testing.T) {
	t.Setenv("REFIT_FLEET_STATE", t.TempDir())
	unlock, err := Lock("demo")
	require.NoError(t, err)
	_, err = Lock("demo")
	require.ErrorContains(t, err, "already")
	other, err := Lock("other")
	require.NoError(t, err)
	other()
	unlock()
	again, err := Lock("demo")
	require.NoError(t, err)
	again()
}
