package mirror

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/refit-dev/refit/agent/host/command"
)

// Keys are throw-away keys of gpg for all tests of a package, made at their first use.
type Keys struct {
	// Algorithm is gpg's name of one; package managers differ in what they understand.
	Algorithm string
	Names     []string

	once sync.Once
	home string
	err  error
}

// Home is gpg's directory.
func (k *Keys) Home(t testing.TB) string {
	t.Helper()
	k.once.Do(func() {
		if k.home, k.err = os.MkdirTemp("", "refit-gpg"); k.err != nil {
			return
		}
		for _, name := range k.Names {
			if _, k.err = k.gpg("--quick-generate-key", name, k.Algorithm, "sign", "never"); k.err != nil {
				return
			}
		}
	})
	if k.err != nil {
		t.Fatal(k.err)
	}
	return k.home
}

// GPG runs gpg with these keys and returns what it prints.
func (k *Keys) GPG(t testing.TB, args ...string) string {
	t.Helper()
	k.Home(t)
	out, err := k.gpg(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Public is the public half of a key, armoured.
func (k *Keys) Public(t testing.TB, name string) string {
	t.Helper()
	return k.GPG(t, "--armor", "--export", name)
}

func (k *Keys) gpg(args ...string) (string, error) {
	argv := append([]string{"gpg", "--homedir", k.home, "--batch", "--yes", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)
	result, err := command.Exec{}.Run(context.Background(), command.Command{Argv: argv})
	return result.Stdout, err
}

// Remove takes the keys away; gpg's agent dies with its home.
func (k *Keys) Remove() {
	if k.home == "" {
		return
	}
	_, _ = command.Exec{}.Run(context.Background(), command.Command{Argv: []string{"gpgconf", "--homedir", k.home, "--kill", "all"}})
	_ = os.RemoveAll(k.home)
}
