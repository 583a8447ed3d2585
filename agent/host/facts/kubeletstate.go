package facts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// kubeletStates are the files that the kubelet reads when it starts, and without which,
// or with which in another form, it does not.
var kubeletStates = []string{"var/lib/kubelet/cpu_manager_state", "var/lib/kubelet/memory_manager_state", "var/lib/kubelet/pod_status_manager_state"}

func (g *gathering) kubeletState() ([]upgrade.KubeletStateFacts, error) {
	var states []upgrade.KubeletStateFacts
	var problems error
	for _, path := range kubeletStates {
		data, err := os.ReadFile(g.path(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("reading a state file of the kubelet: %w", err))
			continue
		}
		states = append(states, stateOf("/"+path, data))
	}
	return states, problems
}

func stateOf(path string, data []byte) upgrade.KubeletStateFacts {
	state := upgrade.KubeletStateFacts{Path: path}
	var content struct {
		PolicyName string `json:"policyName"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		state.Broken = err.Error()
	}
	state.Policy = content.PolicyName
	return state
}
