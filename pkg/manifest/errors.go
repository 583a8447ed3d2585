package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing that is wrong in a file.
type Error struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Field is the path of the field, "" for what is wrong with the text as a whole.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Error implements error: file:line: field: message.
func (e Error) Error() string {
	text := e.File
	if e.Line > 0 {
		text += fmt.Sprintf(":%d", e.Line)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Message
}

// Errors is everything that is wrong, in the order of the text.
type Errors []Error

// Error implements error: one line for each.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, one := range e {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// orNil sorts the errors, and is nil when there are none.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	sorted := append(Errors{}, e...)
	slices.SortStableFunc(sorted, func(a, b Error) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return sorted
}

// Invalid says whether an error is about the content of a file.
func Invalid(err error) bool {
	var many Errors
	var one Error
	return errors.As(err, &many) || errors.As(err, &one)
}
