package apt

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/refit-dev/refit/pkg/upgrade"
)

var (
	keyringDirs  = []string{"/etc/apt/keyrings", "/usr/share/keyrings", "/etc/apt/trusted.gpg.d"}
	validKeyring = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,100}$`)
	validWord    = regexp.MustCompile(`^[0-9A-Za-z./][0-9A-Za-z./:_~+-]{0,200}$`)
)

// keyring finds a keyring that is on the host already, by name or by path. A key
// never comes with a plan.
func (a *Apt) keyring(signedBy string) (string, error) {
	if strings.HasPrefix(signedBy, "/") {
		return a.keyringFile(filepath.Clean(signedBy), signedBy)
	}
	if !validKeyring.MatchString(signedBy) {
		return "", refuse("KeyringInvalid", "keyring %q: want the name of a keyring on the host, such as kubernetes, or its path", signedBy)
	}
	for _, dir := range keyringDirs {
		for _, suffix := range []string{"", ".gpg", ".asc"} {
			if path, err := a.keyringFile(filepath.Join(dir, signedBy+suffix), signedBy); err == nil {
				return path, nil
			}
		}
	}
	return "", refuse("KeyringMissing", "keyring %q is not on the host: put it into /etc/apt/keyrings as %s.gpg or %s.asc", signedBy, signedBy, signedBy)
}

func (a *Apt) keyringFile(path, signedBy string) (string, error) {
	info, err := os.Stat(a.path(path))
	if err != nil || !info.Mode().IsRegular() {
		return "", refuse("KeyringMissing", "keyring %q is not on the host", signedBy)
	}
	return a.path(path), nil
}

// sourceText is a source as a stanza of a .sources file. Every source has a keyring
// of its own; one that trusts whatever the host trusts is not written.
func (a *Apt) sourceText(s upgrade.CandidateSource) (string, error) {
	if err := checkURI(s.URI); err != nil {
		return "", err
	}
	suites := s.Suites
	if len(suites) == 0 {
		suites = []string{"/"}
	}
	for _, word := range append(append([]string{}, suites...), s.Components...) {
		if !validWord.MatchString(word) {
			return "", refuse("SourceInvalid", "package source %s: %q is not a suite or a component", s.Name, word)
		}
	}
	text := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\n", s.URI, strings.Join(suites, " "))
	if len(s.Components) > 0 {
		text += "Components: " + strings.Join(s.Components, " ") + "\n"
	}
	if s.SignedBy == "" {
		return text, nil // the host's own trusted keys, as for the host's own sources
	}
	var keyrings []string
	for _, name := range strings.FieldsFunc(s.SignedBy, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		path, err := a.keyring(name)
		if err != nil {
			return "", err
		}
		keyrings = append(keyrings, path)
	}
	return text + "Signed-By: " + strings.Join(keyrings, " ") + "\n", nil
}

func checkURI(text string) error {
	uri, err := url.Parse(text)
	if err != nil || strings.ContainsFunc(text, unicode.IsSpace) {
		return refuse("SourceInvalid", "package source URI %q is not a URI", text)
	}
	switch uri.Scheme {
	case "http", "https":
		if uri.Host == "" {
			return refuse("SourceInvalid", "package source URI %q names no host", text)
		}
	case "file":
	default:
		return refuse("SourceInvalid", "package source URI %q: want http, https or file", text)
	}
	return nil
}
