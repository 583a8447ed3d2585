package verbs

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// breaks are the characters that would end a cell or a line of a table.
var breaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ", "\v", " ", "\f", " ")

// row writes one line of cells; an empty cell is shown as a dash.
func row(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		if texts[i] = breaks.Replace(fmt.Sprint(c)); texts[i] == "" {
			texts[i] = "-"
		}
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}

func flush(w *tabwriter.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}
