// Package packagelog reads what package managers log of themselves, as much of it as
// can be told to people.
package packagelog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode"
)

const (
	// tailLimit bounds what is read of a log; its end is what counts.
	tailLimit = 1 << 20
	// shownLimit bounds what is told of a command line.
	shownLimit = 120
)

// Tail is the end of a log; nothing when there is none.
func Tail(path string) (string, error) { return tail(path, tailLimit) }

func tail(path string, limit int64) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("opening the package manager's log: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing is written
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("reading the package manager's log: %w", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-limit), limit))
	if err != nil {
		return "", fmt.Errorf("reading the package manager's log: %w", err)
	}
	return string(text), nil
}

// credentials in a URL, such as that of a proxy; a password may have an @ in it.
var credentials = regexp.MustCompile(`://[^/\s]+@`)

// Shown is a text of a log that can be told: on one line, short, and without secrets.
func Shown(text string) string {
	text = credentials.ReplaceAllString(text, "://")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // nor what turns the direction of writing
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > shownLimit {
		return string(runes[:shownLimit]) + "…"
	}
	return text
}
