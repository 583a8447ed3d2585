package main

import (
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/fleet/state"
)

// fleet runs the program and returns its exit code and what it printed.
func fleet(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	oldOut, oldErr := os.Stdout, os.Stderr
	outR, outW, err := os.Pipe()
	require.NoError(t, err)
	errR, errW, err := os.Pipe()
	require.NoError(t, err)
	os.Stdout, os.Stderr = outW, errW
	code = run(t.Context(), args)
	os.Stdout, os.Stderr = oldOut, oldErr
	require.NoError(t, outW.Close())
	require.NoError(t, errW.Close())
	out, err := io.ReadAll(outR)
	require.NoError(t, err)
	errOut, err := io.ReadAll(errR)
	require.NoError(t, err)
	return code, string(out), string(errOut)
}

func recordedFleet(t *testing.T) {
	t.Helper()
	t.Setenv("REFIT_FLEET_STATE", t.TempDir())
	f := &state.Fleet{Name: "demo", Index: 49, Kubernetes: "v1.36.3", Containerd: "v1.7.35"}
	require.NoError(t, f.AddHosts(1, 1))
	require.NoError(t, f.Save())
}

func TestMistakesAndFailuresHaveExitCodesOfTheirOwn(t *testing.T) {
	recordedFleet(t)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown command":       {[]string{"upp"}, exitUsage, `unknown command "upp"`},
		"unknown flag":          {[]string{"up", "--wrokers", "2"}, exitUsage, "--wrokers"},
		"too many arguments":    {[]string{"down", "demo"}, exitUsage, "1 arguments given, 0 needed"},
		"exec without command":  {[]string{"exec", "cp-1"}, exitUsage, "a host and a command are needed"},
		"unknown output format": {[]string{"list", "-o", "yaml"}, exitUsage, `"yaml"`},
		"unknown fleet":         {[]string{"exec", "--name", "nowhere", "cp-1", "--", "true"}, exitFailure, "no such fleet"},
		"unknown host":          {[]string{"kill", "--name", "demo", "cp-9"}, exitFailure, "it has cp-1, worker-1"},
		"host that is off":      {[]string{"exec", "--name", "demo", "cp-1", "--", "true"}, exitFailure, "the host is off"},
		"no kubeconfig yet":     {[]string{"kubeconfig", "--name", "demo"}, exitFailure, "is the fleet completely up?"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := fleet(t, tc.args...)
			assert.Equal(t, tc.code, code)
			assert.Contains(t, stderr, tc.want)
		})
	}
}

func TestDownOfAFleetThatIsNotThereSucceeds(t *testing.T) {
	t.Setenv("REFIT_FLEET_STATE", t.TempDir())
	code, stdout, _ := fleet(t, "down", "--name", "nowhere")
	assert.Zero(t, code)
	assert.Contains(t, stdout, "nothing to take down")
}

func TestListTellsMachinesWhatItTellsPeople(t *testing.T) {
	recordedFleet(t)
	code, stdout, _ := fleet(t, "list")
	assert.Zero(t, code)
	assert.Regexp(t, `demo +worker-1 +10\.249\.0\.101 +off +Kubernetes v1\.36\.3, containerd v1\.7\.35`, stdout)

	code, stdout, _ = fleet(t, "list", "-o", "json")
	assert.Zero(t, code)
	var got []fleetView
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Len(t, got, 1)
	assert.Equal(t, "https://10.249.0.1:6443", got[0].API)
	require.Len(t, got[0].Hosts, 2)
	assert.Equal(t, "cp-1", got[0].Hosts[0].Name)
	assert.True(t, got[0].Hosts[0].ControlPlane)
	assert.False(t, got[0].Hosts[1].Running)
}
