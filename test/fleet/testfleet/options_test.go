package testfleet

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/fleet/state"
)

func good() Options {
	return Options{Name: "demo", ControlPlanes: 1, Workers: 1, Kubernetes: "v1.36.3", Containerd: "v1.7.35"}
}

func TestBadOptionsAreRefusedWithAReason(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("everything is refused without root")
	}
	t.Setenv("REFIT_FLEET_STATE", t.TempDir())
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"name":               {func(o *Options) { o.Name = "Demo!" }, `fleet name "Demo!"`},
		"no patch version":   {func(o *Options) { o.Kubernetes = "v1.36" }, `"v1.36": give an exact version`},
		"no v":               {func(o *Options) { o.Kubernetes = "1.36.3" }, `"1.36.3": give an exact version`},
		"too old":            {func(o *Options) { o.AlsoKubernetes = []string{"v1.30.9"} }, "v1.31 and later"},
		"containerd":         {func(o *Options) { o.Containerd = "latest" }, `containerd version "latest"`},
		"also containerd":    {func(o *Options) { o.AlsoContainerd = []string{"2.4"} }, `containerd version "2.4"`},
		"no control plane":   {func(o *Options) { o.ControlPlanes = 0 }, "0 control planes"},
		"cluster and none":   {func(o *Options) { o.NoCluster = true }, "1 control planes: a fleet without a cluster has none"},
		"too many of a kind": {func(o *Options) { o.Workers = 1000 }, "1000 workers"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			tc.change(&o)
			_, err := Up(t.Context(), o)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestAnExistingFleetKeepsTheVersionsItStartedWith(t *testing.T) {
	t.Setenv("REFIT_FLEET_STATE", t.TempDir())
	o := good()
	record, fresh, err := o.record()
	require.NoError(t, err)
	assert.True(t, fresh)
	require.NoError(t, record.Save())

	o.AlsoKubernetes, o.Workers = []string{"v1.37.2"}, 2
	record, fresh, err = o.record()
	require.NoError(t, err)
	assert.False(t, fresh)
	assert.Equal(t, []string{"v1.37.2"}, record.AlsoKubernetes)
	assert.NotNil(t, record.Host("worker-2"))

	o.Kubernetes = "v1.37.2"
	_, _, err = o.record()
	require.ErrorContains(t, err, "started with Kubernetes v1.36.3")
	require.ErrorContains(t, err, "take it down first")
}

func TestHostsAreListedControlPlaneFirst(t *testing.T) {
	record := &state.Fleet{Name: "demo"}
	require.NoError(t, record.AddHosts(1, 1))
	require.NoError(t, record.AddHosts(2, 1))
	f := &Fleet{record: record}
	var names []string
	for _, h := range f.Hosts() {
		names = append(names, h.Name())
	}
	assert.Equal(t, []string{"cp-1", "cp-2", "worker-1"}, names)
	assert.True(t, f.Host("cp-2").ControlPlane())
	assert.Nil(t, f.Host("worker-9"))
}

func TestProgressLinesTellTheSeconds(t *testing.T) {
	var out bytes.Buffer
	newProgress(&out).host("cp-1", "booted")
	assert.Regexp(t, `^\[ +0\.\ds\] cp-1: booted\n$`, out.String())
	newProgress(nil).say("to nobody")
}
