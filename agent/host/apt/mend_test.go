package apt

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// cutOff leaves a package as dpkg does when the host is reset while it is unpacked.
func (h *host) cutOff(t *testing.T, name string) {
	path := h.path("var/lib/dpkg/status")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	stanzas := strings.Split(string(data), "\n\n")
	for i, s := range stanzas {
		if strings.HasPrefix(s, "Package: "+name+"\n") {
			stanzas[i] = strings.Replace(s, "Status: install ok installed", "Status: install reinstreq half-installed", 1)
			require.NotEqual(t, s, stanzas[i])
		}
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(stanzas, "\n\n")), 0o644))
}

func TestAPackageThatWasCutOffWhileUnpackingIsUnpackedAgain(t *testing.T) {
	h := newHost(t)
	h.installed(deb{name: "kubelet", version: "1"})
	r := newRepository(t, deb{name: "kubelet", version: "2"})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2"], "1")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	h.cutOff(t, "kubelet")
	assert.Equal(t, []string{"kubelet 1 half-installed"}, h.versions("kubelet"))
	assertReason(t, h.Repair(t.Context()), "PackageDBBroken")

	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, []string{"kubelet 2 installed"}, h.versions("kubelet"))
}

func TestAPackageThatWasCutOffAndIsNotOfTheTransactionStopsIt(t *testing.T) {
	h := newHost(t)
	h.installed(deb{name: "kubelet", version: "1"}, deb{name: "telnet", version: "1"})
	r := newRepository(t, deb{name: "kubelet", version: "2"})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2"], "1")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	h.cutOff(t, "telnet")
	blocked := assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "PackageDBBroken")
	assert.Contains(t, blocked.Message, "telnet")
	assert.Equal(t, []string{"kubelet 1 installed"}, h.versions("kubelet"))
}
