package plainhost

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

// faultCode is the exit code of what broke before anything was begun.
const faultCode = 1

func TestApplyLeavesAHostThatCannotRunOperationsAsItIs(t *testing.T) {
	if hasBus() && os.Geteuid() == 0 {
		t.Skip("this machine could run operations")
	}
	version, ok := asked(t, "dpkg-query", "-W", "-f", "${Version}", "dpkg")
	if !ok {
		t.Skip("this machine has no dpkg")
	}
	var got answer
	unchanged(t, func() {
		got = agent(t, nil, "apply", "--yes", "-f", machine(t, "  os: {packages: [{name: dpkg, version: \""+version+"\"}]}\n"))
	})
	assert.Equal(t, faultCode, got.code, got.stdout)
	assert.Regexp(t, "only root may change this host|operations are units of systemd", got.stderr)
	assert.NoFileExists(t, "/var/lib/refit/machine-id", "its state is claimed by nobody")
}
