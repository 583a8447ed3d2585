package steps

import (
	"regexp"
	"strings"
	"unicode"
)

// maxMessage bounds what a failure says: it travels in the status of a Machine.
const maxMessage = 1200

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// tidy makes the output of programs fit for a status: no colours, no control
// characters, and when it is too long its beginning and its end, where programs put
// what they did and why it failed.
func tidy(text string) string {
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
	head, tail := maxMessage/3, maxMessage-maxMessage/3
	return string(runes[:head]) + " … " + string(runes[len(runes)-tail:])
}
