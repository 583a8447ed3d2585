package binding

import (
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent/host/files"
)

// Place is what a host is bound to.
type Place struct {
	Server string `json:"server"`
	// Authorities are the digests of the certificates that vouch for the server; none: those of the system.
	Authorities []string `json:"authorities,omitempty"`
	Namespace   string   `json:"namespace"`
	Machine     string   `json:"machine"`
}

// String names it for people.
func (p Place) String() string {
	return fmt.Sprintf("Machine %s/%s at %s", p.Namespace, p.Machine, p.Server)
}

// Same says whether two are one. A cluster may get another address, or another authority: one
// of the two stays.
func (p Place) Same(q Place) bool {
	if p.Namespace != q.Namespace || p.Machine != q.Machine {
		return false
	}
	return p.Server == q.Server || slices.ContainsFunc(p.Authorities, func(a string) bool { return slices.Contains(q.Authorities, a) })
}

// Of is the place that a client configuration leads to.
func Of(config *rest.Config, namespace, machine string) (Place, error) {
	p := Place{Server: config.Host, Namespace: namespace, Machine: machine}
	text := config.CAData
	if len(text) == 0 && config.CAFile != "" {
		var err error
		if text, err = os.ReadFile(config.CAFile); err != nil {
			return p, fmt.Errorf("reading the authority of %s: %w", config.Host, err)
		}
	}
	p.Authorities = authorities(text)
	return p, nil
}

func authorities(text []byte) []string {
	var out []string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			out = append(out, fmt.Sprintf("sha256:%x", sha256.Sum256(block.Bytes)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OtherError says that the host is bound to another place than the one that it is to follow.
type OtherError struct{ Bound, Wanted Place }

// Error implements error.
func (e *OtherError) Error() string {
	return fmt.Sprintf("this host is bound to %s and refuses %s: to move it, stop the agent and run `refit-agent leave` first", e.Bound, e.Wanted)
}

// Check refuses a place that is not the one that the host is bound to.
func Check(stateDir string, wanted Place) error {
	bound, err := Read(stateDir)
	if err != nil || bound == nil || bound.Same(wanted) {
		return err
	}
	return &OtherError{Bound: *bound, Wanted: wanted}
}

// Bind binds the host, or renews what is known of the cluster that it is bound to.
func Bind(stateDir string, place Place) error {
	if err := Check(stateDir, place); err != nil {
		return err
	}
	text, err := json.Marshal(place)
	if err != nil {
		return fmt.Errorf("encoding what this host is bound to: %w", err)
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	return files.WriteAtomic(file(stateDir), text, 0o600)
}

// Read is what the host is bound to; nil for nothing. What cannot be read binds, too: a damaged
// file must not open the host to whoever comes.
func Read(stateDir string) (*Place, error) {
	text, err := os.ReadFile(file(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what this host is bound to: %w", err)
	}
	var p Place
	if err := json.Unmarshal(text, &p); err != nil || p.Namespace == "" || p.Machine == "" {
		return nil, fmt.Errorf("reading what this host is bound to: %s is damaged: run `refit-agent leave` to bind it anew", file(stateDir))
	}
	return &p, nil
}

func file(stateDir string) string { return filepath.Join(stateDir, "bound.json") }
