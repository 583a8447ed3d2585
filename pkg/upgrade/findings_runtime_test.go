package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// runtimeHop moves containerd from one release to another on a host with some settings.
func runtimeHop(from, to string, config RuntimeConfigFacts) PlanInput {
	f := workerFacts("v1.36.3", from)
	config.Path = "/etc/containerd/config.toml"
	f.Runtime.Configuration = &config
	a := v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt(to)}}}
	return PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: f, Candidates: candidatesOf(nil, []string{to}), Record: []v1alpha1.Versions{{ContainerRuntime: containerdAt(to)}}}
}

func TestAConfigurationThatTheNewContainerdDoesNotTakeIsFound(t *testing.T) {
	const cri = `plugins."io.containerd.grpc.v1.cri".`
	set := func(name, value string) RuntimeConfigFacts {
		return RuntimeConfigFacts{Version: 2, Settings: map[string]string{cri + name: value}}
	}
	for name, tc := range map[string]struct {
		from, to string
		config   RuntimeConfigFacts
		refused  string // what the refusal names
		warned   string // what the warning names
	}{
		"an old form is converted on every start": {from: "1.7.28", to: "2.4.2", config: RuntimeConfigFacts{Version: 2}},
		"so is one that names no version":         {from: "1.7.28", to: "2.4.2"},
		"a newer form than the daemon reads":      {from: "2.4.2", to: "1.7.28", config: RuntimeConfigFacts{Version: 3}, refused: "version 3"},
		"a form that came within the major":       {from: "2.4.2", to: "2.2.1", config: RuntimeConfigFacts{Version: 4}, refused: "from 2.3.0 on"},
		"a form that both read":                   {from: "2.2.1", to: "2.4.2", config: RuntimeConfigFacts{Version: 3}},
		"a shim that is gone":                     {from: "1.7.28", to: "2.4.2", config: set("containerd.runtimes.runc.runtime_type", "io.containerd.runc.v1"), refused: "io.containerd.runc.v1"},
		"a runtime that is gone":                  {from: "1.7.28", to: "2.4.2", config: set("containerd.runtimes.old.runtime_type", "io.containerd.runtime.v1.linux"), refused: "runtimes.old"},
		"the shim that stays":                     {from: "1.7.28", to: "2.4.2", config: set("containerd.runtimes.runc.runtime_type", "io.containerd.runc.v2")},
		"a snapshotter that is gone":              {from: "1.7.28", to: "2.4.2", config: set("containerd.snapshotter", "aufs"), refused: "overlayfs"},
		"the snapshotter that stays":              {from: "1.7.28", to: "2.4.2", config: set("containerd.snapshotter", "overlayfs")},
		"a setting that is ignored":               {from: "1.7.28", to: "2.4.2", config: set("systemd_cgroup", "true"), warned: "SystemdCgroup"},
		"mirrors that are still read":             {from: "1.7.28", to: "2.4.2", config: set("registry.mirrors.docker.io", ""), warned: "config_path"},
		"mirrors that are read no more":           {from: "2.4.2", to: "2.7.0", config: set("registry.mirrors.docker.io", ""), refused: "from 2.7.0 on"},
		"a patch changes nothing of it":           {from: "1.7.28", to: "1.7.29", config: set("containerd.snapshotter", "aufs")},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewPlan(runtimeHop(tc.from, tc.to, tc.config))
			if tc.refused != "" {
				blocked := requireBlocked(t, err, FindingRuntimeConfig)
				assert.Contains(t, blocked.Message, tc.refused)
				assert.Contains(t, blocked.Message, "/etc/containerd/config.toml")
				return
			}
			require.NoError(t, err)
			if tc.warned == "" {
				assert.Empty(t, p.Findings)
				return
			}
			require.Equal(t, []string{FindingRuntimeSetting}, reasons(p.Findings))
			assert.Contains(t, p.Findings[0].Message, tc.warned)
		})
	}
}

func TestEachRemovedSettingIsJudgedOnBothSidesOfItsRelease(t *testing.T) {
	for _, r := range containerdRemovals {
		t.Run(r.setting+" "+r.value, func(t *testing.T) {
			since, ok := ParseRelease(r.since)
			require.True(t, ok)
			config := RuntimeConfigFacts{Settings: map[string]string{"plugins.x." + r.setting: firstOf(r.value, "x")}}
			_, err := NewPlan(runtimeHop("1.6.30", r.since, config))
			assert.Equal(t, r.refused, IsBlocked(err) != nil)
			assert.NotEmpty(t, r.instead)
			assert.True(t, since.Known())
		})
	}
}

func TestAKubeletThatSaysNothingOfItsCgroupDriverUsesCgroupfs(t *testing.T) {
	hop := func(runtime, driver string) PlanInput {
		in := kubeletHop("v1.33.3", "v1.33.4")
		in.Facts.Runtime.Running, in.Facts.Runtime.CgroupDriver = runtime, driver
		in.Facts.Kubelet.Configuration = map[string]any{"maxPods": 110}
		return in
	}
	_, err := NewPlan(hop("v1.7.28", "systemd"))
	assert.Contains(t, requireBlocked(t, err, FindingCgroupDriver).Message, "cgroupfs")
	assert.Empty(t, plan(t, hop("v1.7.28", "cgroupfs")).Findings)

	flagged := hop("v1.7.28", "systemd")
	flagged.Facts.Kubelet.Flags = []string{"--cgroup-driver", "systemd"}
	assert.Empty(t, plan(t, flagged).Findings, "the flag of the running kubelet says it")
	flagged.Facts.Kubelet.Flags = nil
	flagged.Facts.Kubelet.FlagSources = map[string]string{"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--cgroup-driver=systemd"}
	assert.Empty(t, plan(t, flagged).Findings)

	elsewhere := hop("v1.7.28", "systemd")
	elsewhere.Facts.Kubelet.Flags = []string{"--config-dir=/etc/kubernetes/kubelet.conf.d"}
	assert.Empty(t, plan(t, elsewhere).Findings, "a drop-in may say it")
}

func TestTheRuntimesThatANewKubeletNoLongerTakes(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to, containerd string
		takes                bool
	}{
		"before CRI v1":                       {"v1.25.9", "v1.26.4", "1.5.18", false},
		"with CRI v1":                         {"v1.25.9", "v1.26.4", "1.6.0", true},
		"the last that does without a driver": {"v1.36.3", "v1.37.2", "1.7.28", true},
		"the first that wants to be told":     {"v1.37.2", "v1.38.0", "1.7.28", false},
		"and is told":                         {"v1.37.2", "v1.38.0", "2.0.0", true},
	} {
		t.Run(name, func(t *testing.T) {
			in := kubeletHop(tc.from, tc.to)
			in.Facts.Runtime.Running = "v" + tc.containerd
			_, err := NewPlan(in)
			if tc.takes {
				require.NoError(t, err)
				return
			}
			requireBlocked(t, err, ReasonRuntimeTooOld)
		})
	}
}

func TestAKubeletThatKeepsAnotherSandboxImageIsAWarning(t *testing.T) {
	in := kubeletHop("v1.33.3", "v1.34.4")
	in.Facts.Runtime.SandboxImage = "registry.k8s.io/pause:3.6"
	in.Facts.Kubelet.FlagSources = map[string]string{kubeadmFlagsFile: `KUBELET_KUBEADM_ARGS="--pod-infra-container-image=k8s.gcr.io/pause:3.4.1"`}
	findings := plan(t, in).Findings
	require.Equal(t, []string{FindingSandboxImage}, reasons(findings))
	assert.Contains(t, findings[0].Message, "k8s.gcr.io/pause:3.4.1")
	in.Facts.Runtime.SandboxImage = "k8s.gcr.io/pause:3.4.1"
	assert.Empty(t, plan(t, in).Findings)
}

func TestARestartThatWouldChangeTheRuntimeIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		flag, config, runs string
		refused            bool
	}{
		"a flag from the days of Docker":     {flag: "unix:///var/run/dockershim.sock", runs: "unix:///run/containerd/containerd.sock", refused: true},
		"a configuration for another daemon": {config: "unix:///var/run/crio/crio.sock", runs: "unix:///run/containerd/containerd.sock", refused: true},
		"a path without a scheme":            {config: "/run/containerd/containerd.sock", runs: "unix:///run/containerd/containerd.sock"},
		"two names of one directory":         {flag: "unix:///var/run/crio/crio.sock", runs: "unix:///run/crio/crio.sock"},
		"nobody says":                        {runs: "unix:///run/containerd/containerd.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			in := kubeletHop("v1.36.3", "v1.36.4")
			in.Facts.Runtime.Endpoint = tc.runs
			if tc.flag != "" {
				in.Facts.Kubelet.FlagSources = map[string]string{kubeadmFlagsFile: `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=` + tc.flag + `"`}
			}
			if tc.config != "" {
				in.Facts.Kubelet.Configuration = map[string]any{"containerRuntimeEndpoint": tc.config, "cgroupDriver": "systemd"}
			}
			_, err := NewPlan(in)
			if tc.refused {
				assert.Contains(t, requireBlocked(t, err, FindingRuntimeEndpoint).Message, tc.runs)
				return
			}
			require.NoError(t, err)
		})
	}
}
