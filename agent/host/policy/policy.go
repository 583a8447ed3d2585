// Package policy reads what the owner of a host allows: /etc/refit/policy.yaml. A file that
// somebody else could have written is no policy of his, and one that is not understood
// allows nothing.
package policy

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/hostpolicy"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Policy of the host under Root.
type Policy struct {
	Root string
	// Owner of the file and of the directories above it: root.
	Owner uint32
}

// Read is the policy of the host; nil where there is none. It never fails: what keeps the
// file from being read is told in its place, and refuses everything.
func (p Policy) Read() *upgrade.PolicyFacts {
	data, err := files.ReadTrusted(p.Root, hostpolicy.Path, p.Owner, hostpolicy.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	out := &upgrade.PolicyFacts{Path: hostpolicy.Path}
	if err == nil {
		var rules hostpolicy.Policy
		if rules, err = hostpolicy.Decode(data); err == nil {
			out.Rules = &rules
			return out
		}
	}
	out.Broken = strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), hostpolicy.Path+" ")), " ")
	return out
}
