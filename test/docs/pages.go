package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refit-dev/refit/test/checkout"
)

// Page is one file of the documentation.
type Page struct {
	// Path from the root of the checkout.
	Path string
	Text string
}

// Block of code in a page.
type Block struct {
	// Where it begins, as file:line.
	Where string
	// Language of its fence; "" for an indented one.
	Language string
	Text     string
}

// Pages are the README and all pages of docs, deploy and test.
func Pages() ([]Page, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	paths := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	for _, dir := range []string{"docs", "deploy", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
				rel, _ := filepath.Rel(root, path)
				paths = append(paths, rel)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing the pages of %s: %w", dir, err)
		}
	}
	slices.Sort(paths)
	pages := make([]Page, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, fmt.Errorf("reading page %s: %w", path, err)
		}
		pages = append(pages, Page{path, string(text)})
	}
	return pages, nil
}

// Blocks are the fenced and the indented blocks of code, and the prose with them blanked out.
func (p Page) Blocks() (blocks []Block, prose string) {
	var open *Block
	var fence string
	var rest strings.Builder
	end := func() {
		if open != nil {
			blocks = append(blocks, *open)
			open, fence = nil, ""
		}
	}
	blank := true
	for i, line := range strings.Split(p.Text, "\n") {
		trimmed := strings.TrimSpace(line)
		begin := func(language string) {
			open = &Block{Where: fmt.Sprintf("%s:%d", p.Path, i+1), Language: language}
		}
		switch {
		case fence != "" && trimmed == fence:
			end()
		case fence != "":
			open.Text += line + "\n"
		case strings.HasPrefix(trimmed, "```"):
			end()
			fence = "```"
			begin(strings.TrimPrefix(trimmed, "```"))
		case strings.HasPrefix(line, "    ") && (blank || open != nil):
			if open == nil {
				begin("")
			}
			open.Text += strings.TrimPrefix(line, "    ") + "\n"
		case trimmed == "" && open != nil:
			open.Text += "\n"
		default:
			end()
			rest.WriteString(line)
		}
		blank = trimmed == ""
		rest.WriteString("\n")
	}
	end()
	return blocks, rest.String()
}
