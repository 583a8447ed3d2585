package rpm

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// transaction is what is under way. It is written before rpm begins and removed once
// rpm's work is seen to be whole. Crash window: rpm's own database does not tell a
// package whose last script was cut off from one that is whole, and not one whose files
// were half unpacked over the old ones from the old one. This file does.
type transaction struct {
	Dir     string                  `json:"dir"`
	Changes []upgrade.PackageChange `json:"changes"`
	// Config are the configuration files that the host changed, with their copies.
	Config []configFile `json:"config,omitempty"`
}

func (r *RPM) transactionPath() string { return r.state("rpm/transaction.json") }

// unfinished is the transaction that did not end; nil when there is none.
func (r *RPM) unfinished() (*transaction, error) {
	data, err := os.ReadFile(r.transactionPath())
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the transaction that was under way: %w", err)
	}
	var t transaction
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, refuse(upgrade.ReasonPackageDBBroken, "%s is damaged: see with `rpm -Va` what the last transaction left, then remove the file", r.transactionPath())
	}
	return &t, nil
}

// interrupted are the packages of a transaction that did not end.
func (r *RPM) interrupted() []string {
	t, err := r.unfinished()
	if err != nil || t == nil {
		return nil
	}
	return packagefile.Names(t.Changes)
}

func (r *RPM) begin(t transaction) error {
	data, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("recording a transaction: %w", err)
	}
	if err := files.PrivateDir(r.state("rpm")); err != nil {
		return err
	}
	return files.WriteAtomic(r.transactionPath(), append(data, '\n'), 0o600)
}

// end forgets the transaction, and the copies of configuration files after it.
func (r *RPM) end() error {
	if err := files.Remove(r.transactionPath()); err != nil {
		return err
	}
	if err := os.RemoveAll(r.state("rpm/config")); err != nil {
		return fmt.Errorf("removing copies of configuration files: %w", err)
	}
	return nil
}
