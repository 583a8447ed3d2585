package watch

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// clean takes out of a text what would move the cursor, end the line or turn its direction:
// hosts and controllers word these texts, and the terminal is the operator's.
func clean(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unprintable(r) || r == ' ' }), " ")
}

func unprintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

// fit is a text in exactly so many columns.
func fit(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	if len(text) > columns || !plain(text) {
		text = ansi.Truncate(text, columns, "…")
	}
	return text + strings.Repeat(" ", max(columns-ansi.StringWidth(text), 0))
}

// plain says that bytes are columns.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// cut is a text in at most so many columns.
func cut(text string, columns int) string { return strings.TrimRight(fit(text, columns), " ") }
