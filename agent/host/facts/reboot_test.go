package facts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAWishForARebootNamesTheVersionsThatAreInstalled(t *testing.T) {
	root := tree(t, map[string]string{
		"etc/os-release": "ID=debian\n", "run/reboot-required": "", "run/reboot-required.pkgs": "libc6\nlibc6\ngone\n",
		"var/lib/dpkg/status": "Package: libc6\nStatus: install ok installed\nMaintainer: x\nArchitecture: amd64\nVersion: 2.36-9+deb12u10\nDescription: x\n",
	})
	g := gather(New(root, units{}))
	require.NoError(t, g.os(t.Context()))
	require.NoError(t, g.reboot(t.Context()))
	assert.True(t, g.facts.Reboot.Required)
	assert.Equal(t, []string{"gone", "libc6"}, g.facts.Reboot.Packages)
	assert.Equal(t, []string{"gone", "libc6 2.36-9+deb12u10"}, g.facts.Reboot.Versions)
}
