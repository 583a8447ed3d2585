package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// https://github.com/kubernetes/kubernetes/issues/135711, https://github.com/kubernetes/kubernetes/issues/110478
func TestAKubeletIsNotRestartedOnStateItWouldNotRead(t *testing.T) {
	cpu := func(policy, broken string) []KubeletStateFacts {
		return []KubeletStateFacts{{Path: "/var/lib/kubelet/cpu_manager_state", Policy: policy, Broken: broken}}
	}
	for name, tc := range map[string]struct {
		state  []KubeletStateFacts
		config map[string]any
		flags  []string
		says   string // "": a plan
	}{
		"the policy was changed after the file was written": {cpu("none", ""), map[string]any{"cpuManagerPolicy": "static"}, nil, `"static"`},
		"the policy was taken out of the configuration":     {cpu("static", ""), map[string]any{"maxPods": 110}, nil, `"none"`},
		"the policy is the same":                            {cpu("static", ""), map[string]any{"cpuManagerPolicy": "static"}, nil, ""},
		"the policy is set by a flag":                       {cpu("static", ""), map[string]any{"maxPods": 110}, []string{"--cpu-manager-policy=static"}, ""},
		"a drop-in may set the policy":                      {cpu("static", ""), map[string]any{"maxPods": 110}, []string{"--config-dir=/etc/k.d"}, ""},
		"the file was cut short":                            {cpu("", `invalid character '"' after top-level value`), nil, nil, "top-level value"},
		"memory has a policy of its own":                    {[]KubeletStateFacts{{Path: "/var/lib/kubelet/memory_manager_state", Policy: "None"}}, map[string]any{"maxPods": 110}, nil, ""},
		"a file without a policy":                           {[]KubeletStateFacts{{Path: "/var/lib/kubelet/pod_status_manager_state"}}, map[string]any{"maxPods": 110}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := kubeletHop("v1.36.3", "v1.36.4")
			in.Facts.Kubelet.State, in.Facts.Kubelet.Configuration, in.Facts.Kubelet.Flags = tc.state, tc.config, tc.flags
			_, err := NewPlan(in)
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			blocked := requireBlocked(t, err, FindingKubeletState)
			assert.Contains(t, blocked.Message, tc.says)
			assert.Contains(t, blocked.Message, tc.state[0].Path)
		})
	}
}
