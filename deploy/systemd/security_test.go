package systemd_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// worst is what systemd-analyze of systemd 252 makes of the agent's unit (0 is locked up, 10 is wide open), as
// docs/installation.md has it. Better is welcome: lower both.
const worst = 2.2

// given are the marks against the unit that its work costs, with the reason.
var given = map[string]string{
	"UserOrDynamicUser":                              "the system bus takes orders from uid 0",
	"CapabilityBoundingSet_CAP_SYS_ADMIN":            "systemd asks who sends an order for it",
	"CapabilityBoundingSet_CAP_DAC_FOWNER_IPC_OWNER": "the kubelet's key",
	"SystemCallFilter_privileged":                    "chown: a file that is replaced keeps its owner",
	"RestrictAddressFamilies_AF_UNIX":                "the system bus",
	"RestrictAddressFamilies_AF_INET_INET6":          "the API server",
	"PrivateNetwork":                                 "the API server",
	"IPAddressDeny":                                  "an API server may be at any address",
	"PrivateUsers":                                   "uid 0 of the host",
	"ProcSubset":                                     "the boot id is in /proc/sys",
	"RootDirectoryOrRootImage":                       "the host's own directories",
	"DeviceAllow":                                    "ProtectClock adds the clock, to be read",
}

func TestTheUnitOfTheAgentStaysLockedUp(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--no-pager", "./refit-agent.service").CombinedOutput()
	if err != nil && strings.Contains(string(out), "offline") {
		t.Skipf("this systemd-analyze judges no files: %s", out)
	}
	require.NoError(t, err, "%s", out)
	_, overall, found := strings.Cut(string(out), "Overall exposure level for refit-agent.service: ")
	require.True(t, found, "%s", out)
	score, err := strconv.ParseFloat(strings.Fields(overall)[0], 64)
	require.NoError(t, err)
	t.Logf("exposure %.1f", score)
	assert.LessOrEqual(t, score, worst, "%s", out)
}

func TestEveryMarkAgainstTheUnitHasItsReason(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--json=short", "./refit-agent.service").Output()
	if err != nil {
		t.Skipf("this systemd-analyze judges no files: %v", err)
	}
	var findings []struct {
		Field    string `json:"json_field"`
		Set      *bool
		Exposure any
	}
	require.NoError(t, json.Unmarshal(out, &findings))
	require.Greater(t, len(findings), 50)
	for _, f := range findings {
		if f.Exposure != nil {
			assert.Contains(t, given, f.Field)
		}
	}
}

// It is what the unit of a package starts from: directories that are not there would stop it.
func TestTheAgentWritesWhereItsUnitLetsIt(t *testing.T) {
	text, err := os.ReadFile("refit-agent.service")
	require.NoError(t, err)
	for _, line := range []string{"StateDirectory=refit", "RuntimeDirectory=refit", "ConfigurationDirectory=refit", "ReadWritePaths=/var/lib/refit /run/refit", "SystemCallErrorNumber=EPERM"} {
		assert.Contains(t, string(text), "\n"+line+"\n")
	}
}
