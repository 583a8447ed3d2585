package agent

import (
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// HoldFile reads the veto of the host's owner. One that is there and cannot be read is a veto too.
func HoldFile(path string) func() *upgrade.HoldFacts {
	return func() *upgrade.HoldFacts {
		message, there, _ := files.Veto(path) // doubt is a veto
		if !there {
			return nil
		}
		return &upgrade.HoldFacts{Path: path, Message: message}
	}
}
