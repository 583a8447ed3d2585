package apt

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// fullDisk is what programs print of a file system without room.
var fullDisk = regexp.MustCompile(`No space left on device|Disk quota exceeded|You don't have enough free space`)

// What apt prints is the only place where it says why a fetch failed; the patterns
// are apt's own untranslated texts, and an unknown one is a passing fault, never a success.
var fetchFailures = []struct {
	pattern  *regexp.Regexp
	reason   string
	terminal bool
	advice   string
}{
	// A full disk makes apt doubt signatures and sources too, so it comes first.
	{fullDisk, "NoSpace", false, "free some space"},
	{regexp.MustCompile(`list of sources could not be read|Malformed (entry|line|stanza)`), "SourceInvalid", true, "apt does not understand the source"},
	// It is no signature at all, so there is none to be renewed on the host.
	{regexp.MustCompile(`Clearsigned file isn't valid, got 'NOSPLIT'|does the network require authentication`), "RepoUnreachable", false, "something else than the repository answers there: a proxy, or a page to log in"},
	{regexp.MustCompile(`Release file for \S+ is (expired|not valid yet)`), "RepoExpired", false, "the mirror is no longer renewed, or the host's clock is wrong"},
	{
		regexp.MustCompile(`EXPKEYSIG|NO_PUBKEY|BADSIG|KEYEXPIRED|REVKEYSIG|signatures? (couldn't be verified|were invalid)|At least one invalid signature|not live until|Sub-process .*gpgv? returned an error`),
		"RepoSignature", true, "renew the repository's key on the host; signature checks are never turned off",
	},
	{
		regexp.MustCompile(`\b(401 +Unauthorized|403 +Forbidden|404 +Not Found|410 +Gone)|does not have a Release file|File not found`),
		"RepoUnavailable", true, "check the repository's URI; this minor may not be published there",
	},
	{
		regexp.MustCompile(`\b(5\d\d +[A-Z]|429 +Too Many)|Could not connect|Could not resolve|Temporary failure|Connection (failed|timed out|reset)|Unable to connect`),
		"RepoUnreachable", false, "the repository is away; it is asked again",
	},
	// apt says this also of a repository that it could not reach, so it comes after those.
	{regexp.MustCompile(`is not signed`), "RepoSignature", true, "unsigned repositories are never used"},
	{regexp.MustCompile(`Hash Sum mismatch|File has unexpected size`), "DigestMismatch", false, "the mirror may be in the middle of a sync"},
	{regexp.MustCompile(`Could not get lock`), "PackageLockHeld", false, "wait for the other package manager"},
}

// fetchFailure says what a failed fetch means and whether it may pass.
func fetchFailure(doing, output string, err error) error {
	lines := complaints(output)
	for _, f := range fetchFailures {
		if f.pattern.MatchString(lines) {
			return &upgrade.Blocked{Reason: f.reason, Message: fmt.Sprintf("%s: %s; %s", doing, lines, f.advice), Terminal: f.terminal}
		}
	}
	if err == nil {
		return wait("RepoUnreachable", "%s: %s", doing, lines)
	}
	return &upgrade.Blocked{Reason: "RepoUnreachable", Message: fmt.Sprintf("%s: %s", doing, cmp.Or(lines, err.Error()))}
}

// noise is what dpkg and apt write beside their errors.
var noise = regexp.MustCompile(`^(W: |N: |debconf: |dpkg: warning|Extracting templates|Preconfiguring packages)`)

// transactionFailure says why a transaction failed: programs say much before they do,
// and a message has room for little.
func transactionFailure(result command.Result, err error) error {
	var failure *command.Error
	if !errors.As(err, &failure) || failure.Timeout {
		return err
	}
	var kept []string
	for line := range strings.Lines(result.Stderr) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" && !noise.MatchString(line) {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		return err
	}
	why := *failure
	why.Tail = command.Tail(strings.Join(kept, "\n"), maxWhy)
	if fullDisk.MatchString(result.Stderr) {
		return wait("NoSpace", "%v; free some space", &why)
	}
	return &why
}

// maxWhy is what a status has room for, with what becomes of the host after it.
const maxWhy = 500

// telling are the warnings of a fetch that say why it failed; the others are about sources that are well.
var telling = regexp.MustCompile(`Failed to fetch|GPG error|index files failed|signature`)

// complaints are the lines of apt that say what failed and why, without progress, notes and
// warnings about anything else, each once.
func complaints(output string) string {
	var kept []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "E: "), strings.HasPrefix(line, "Err:"):
		case strings.HasPrefix(line, "W: ") && telling.MatchString(line) && !strings.Contains(line, "sandbox"):
		default:
			continue
		}
		if !slices.Contains(kept, line) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "; ")
}
