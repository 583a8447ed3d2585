// Package health is what an agent says of itself to the executor that has installed it: the new agent
// stays only if it runs, has an executor that answers, and is heard by its API server.
package health

import (
	"encoding/json"
	"fmt"
)

// File is where a host has it, and Program the agent that it is about. It goes with the boot.
const (
	File    = "/run/refit/agent.json"
	Program = "/usr/bin/refit-agent"
)

// Report is of the agent that runs, not of the one on disk.
type Report struct {
	// Program is the digest (SHA-256) of the agent that runs, and Version what it calls itself.
	Program string `json:"program"`
	Version string `json:"version"`
	// ExecutorAnswers says that the executor on disk has said what runs here; ExecutorFault is why it has not.
	ExecutorAnswers bool   `json:"executorAnswers,omitempty"`
	ExecutorFault   string `json:"executorFault,omitempty"`
	// Reported says that this agent has written the status of its Machine; Refused is what the API server had
	// against it. An API server that does not answer says nothing about an agent: then both are empty.
	Reported bool   `json:"reported,omitempty"`
	Refused  string `json:"refused,omitempty"`
}

// Encode is the content of File.
func (r Report) Encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the agent's health: %w", err)
	}
	return data, nil
}

// Decode reads the content of File. Fields that another version has besides are of no matter.
func Decode(data []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return Report{}, fmt.Errorf("reading the agent's health: %w", err)
	}
	return r, nil
}
