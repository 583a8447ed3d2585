package artefacts

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

const keyringEntry = "keyring/v1"

const (
	publicKeyFile  = "public.gpg"
	privateKeyFile = "private.gpg"
)

// signing is what every gpgv of the last ten years verifies.
var signing = &packet.Config{Algorithm: packet.PubKeyAlgoRSA, RSABits: 3072, DefaultHash: crypto.SHA512}

func (m *maker) keyringItems() ([]item, error) {
	return []item{{name: "signing key of the apt repositories", entry: keyringEntry, eta: 2 * time.Second, make: makeKeyring}}, nil
}

func makeKeyring(_ context.Context, w workplace) error {
	key, err := openpgp.NewEntity("Refit test fleet", "signs the apt repositories of a test fleet", "fleet@refit.dev", signing)
	if err != nil {
		return fmt.Errorf("generating signing key: %w", err)
	}
	var public, private bytes.Buffer
	if err := key.SerializePrivate(&private, signing); err != nil {
		return fmt.Errorf("writing private key: %w", err)
	}
	if err := key.Serialize(&public); err != nil {
		return fmt.Errorf("writing public key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, privateKeyFile), private.Bytes(), 0o600); err != nil {
		return fmt.Errorf("keeping private key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, publicKeyFile), public.Bytes(), 0o644); err != nil {
		return fmt.Errorf("keeping public key: %w", err)
	}
	return nil
}

func (c cache) signingKey() (*openpgp.Entity, error) {
	path := c.path(keyringEntry, privateKeyFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading signing key: %w", err)
	}
	keys, err := openpgp.ReadKeyRing(bytes.NewReader(raw))
	if err != nil || len(keys) != 1 {
		return nil, fmt.Errorf("reading signing key %s: %d keys: %w", path, len(keys), err)
	}
	return keys[0], nil
}

// signRelease writes InRelease and Release.gpg next to Release.
func signRelease(key *openpgp.Entity, dir string) error {
	release, err := os.ReadFile(filepath.Join(dir, "Release"))
	if err != nil {
		return fmt.Errorf("reading Release: %w", err)
	}
	var inline, detached bytes.Buffer
	text, err := clearsign.Encode(&inline, key.PrivateKey, signing)
	if err != nil {
		return fmt.Errorf("signing InRelease: %w", err)
	}
	if _, err := text.Write(release); err != nil {
		return fmt.Errorf("signing InRelease: %w", err)
	}
	if err := text.Close(); err != nil {
		return fmt.Errorf("signing InRelease: %w", err)
	}
	inline.WriteByte('\n')
	if err := openpgp.ArmoredDetachSign(&detached, key, bytes.NewReader(release), signing); err != nil {
		return fmt.Errorf("signing Release: %w", err)
	}
	for name, content := range map[string][]byte{"InRelease": inline.Bytes(), "Release.gpg": detached.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
