package steps

import (
	"regexp"
	"strings"
	"unicode"
)

// maxMessage bounds what a failure says: it travels in the status of a Machine.
// What became of the host is said after it, and is to fit there too.
const maxMessage = 640

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// Tidy makes the output of programs fit for a status: no colours, no control
// characters, and when it is too long its beginning, where our own messages say what
// failed and why, and its end, where programs do.
func Tidy(text string) string {
	text = escapes.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	runes := []rune(strings.TrimSpace(text))
	if len(runes) <= maxMessage {
		return string(runes)
	}
	head := maxMessage * 2 / 3
	tail := maxMessage - head
	return string(runes[:head]) + " … " + string(runes[len(runes)-tail:])
}
