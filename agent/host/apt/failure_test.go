package apt

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestWhatAptSaysOfAFailedFetchDecidesWhetherItMayPass(t *testing.T) {
	for name, tc := range map[string]struct {
		output   string
		reason   string
		terminal bool
	}{
		"an expired key": {
			"Err:1 https://pkgs.k8s.io InRelease\n  The following signatures were invalid: EXPKEYSIG 234654DA9A296436\nW: GPG error: https://pkgs.k8s.io InRelease: The following signatures were invalid: EXPKEYSIG 234654DA9A296436 isv\nE: The repository 'https://pkgs.k8s.io InRelease' is not signed.",
			"RepoSignature", true,
		},
		"an unknown key":            {"W: GPG error: https://x InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 12", "RepoSignature", true},
		"a minor that is not there": {"E: Failed to fetch https://pkgs.k8s.io/core:/stable:/v1.23/deb/InRelease  403  Forbidden [IP: 1.2.3.4 443]\nE: The repository 'x InRelease' is not signed.", "RepoUnavailable", true},
		"a server in trouble":       {"E: Failed to fetch https://x/InRelease  502  Bad Gateway\nE: The repository 'x InRelease' is not signed.", "RepoUnreachable", false},
		"too many requests":         {"E: Failed to fetch https://x/InRelease  429  Too Many Requests", "RepoUnreachable", false},
		"no name":                   {"W: Failed to fetch https://x/InRelease  Temporary failure resolving 'x'", "RepoUnreachable", false},
		"a mirror in the middle":    {"E: Failed to fetch https://x/Packages.gz  Hash Sum mismatch", "DigestMismatch", false},
		"an index of long ago":      {"E: Release file for http://x/deb/InRelease is expired (invalid since 5d 1h 2min 3s). Updates for this repository will not be applied.", "RepoExpired", false},
		"an index of tomorrow":      {"E: Release file for http://x/deb/InRelease is not valid yet (invalid for another 23h 59min 59s). Updates for this repository will not be applied.", "RepoExpired", false},
		"never signed":              {"E: The repository 'https://x ./ Release' is not signed.", "RepoSignature", true},
		"a full disk":               {"E: Write error - write (28: No space left on device)", "NoSpace", false},
		"a full disk that makes apt doubt a signature": {"W: GPG error: http://x InRelease: At least one invalid signature was encountered.\nE: Couldn't create temporary file /tmp/apt.sig - write (28: No space left on device)\nE: The repository 'http://x InRelease' is not signed.", "NoSpace", false},
		"a quota that is used up":                      {"E: Write error - write (122: Disk quota exceeded)", "NoSpace", false},
		"a source apt does not accept":                 {"E: Invalid value set for option Signed-By\nE: The list of sources could not be read.", "SourceInvalid", true},
		"something new":                                {"E: something that nobody has seen", "RepoUnreachable", false},
	} {
		t.Run(name, func(t *testing.T) {
			blocked := assertReason(t, fetchFailure("fetching", tc.output, errors.New("exit code 100")), tc.reason)
			assert.Equal(t, tc.terminal, blocked.Terminal)
			assert.Contains(t, blocked.Message, "fetching")
		})
	}
}

// A source that is well is none that a failure is about, whatever apt warns of it.
func TestAFailedFetchIsToldOfTheSourcesThatFailed(t *testing.T) {
	err := fetchFailure("fetching", `Hit:1 http://other.example/debian bookworm InRelease
Err:2 https://mirror.example/v1.37/deb InRelease
  403  Forbidden [IP: 192.0.2.7 443]
W: http://other.example/debian/dists/bookworm/InRelease: Key is stored in legacy trusted.gpg keyring
W: Target Packages (main/binary-amd64/Packages) is configured multiple times in /etc/apt/sources.list:1 and http://other.example
E: Failed to fetch https://mirror.example/v1.37/deb/InRelease  403  Forbidden [IP: 192.0.2.7 443]
E: Failed to fetch https://mirror.example/v1.37/deb/InRelease  403  Forbidden [IP: 192.0.2.7 443]
E: The repository 'https://mirror.example/v1.37/deb InRelease' is not signed.
`, errors.New("exit code 100"))
	blocked := assertReason(t, err, "RepoUnavailable")
	assert.NotContains(t, blocked.Message, "other.example")
	assert.Equal(t, 1, strings.Count(blocked.Message, "Failed to fetch"))
}

// What dpkg says at the end of a transaction is the most telling, and what it says first of that.
func TestAFailedTransactionSaysWhy(t *testing.T) {
	const said = "Reading package lists...\nThe following packages will be upgraded:\n  a b\n"
	failed := &command.Error{Argv: []string{"apt-get"}, ExitCode: 100, Tail: said}
	for name, tc := range map[string]struct {
		stderr, reason, begins string
	}{
		"a full disk": {
			"debconf: delaying package configuration\ndpkg: error processing archive /x.deb (--unpack):\n cannot copy extracted data: failed to write (No space left on device)\nE: Sub-process /usr/bin/dpkg returned an error code (1)\n",
			"NoSpace", "apt-get: exit code 100: dpkg: error processing archive /x.deb",
		},
		"a script that fails": {
			"dpkg: error processing package a (--configure):\n installed a package post-installation script subprocess returned error exit status 3\n",
			"", "apt-get: exit code 100: dpkg: error processing package a",
		},
		"nothing but noise": {"W: something\ndebconf: something\n", "", "apt-get: exit code 100: Reading package lists"},
	} {
		t.Run(name, func(t *testing.T) {
			err := transactionFailure(command.Result{Stdout: said, Stderr: tc.stderr}, failed)
			assert.Contains(t, err.Error(), tc.begins)
			var blocked *upgrade.Blocked
			if errors.As(err, &blocked) || tc.reason != "" {
				require.NotNil(t, blocked)
				assert.Equal(t, tc.reason, blocked.Reason)
				assert.Contains(t, err.Error(), "No space left on device")
			}
		})
	}
	other := errors.New("starting apt-get: no such file")
	assert.Equal(t, other, transactionFailure(command.Result{Stderr: "E: x"}, other))
}
