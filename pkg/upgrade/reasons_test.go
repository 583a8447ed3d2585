package upgrade

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// constants are the string constants of a file, by name; one that is another's value is looked up in known.
func constants(t *testing.T, path string, known map[string]string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		switch value := spec.Values[0].(type) {
		case *ast.BasicLit:
			if value.Kind == token.STRING {
				out[spec.Names[0].Name], err = strconv.Unquote(value.Value)
				require.NoError(t, err)
			}
		case *ast.Ident:
			require.Contains(t, known, value.Name)
			out[spec.Names[0].Name] = known[value.Name]
		}
		return true
	})
	return out
}

// documented are the rows of a table of docs/planning.md by the reasons in their first column.
func documented(t *testing.T, heading string) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/planning.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	reason := regexp.MustCompile("`([A-Z][A-Za-z0-9]+)`")
	rows := map[string][]string{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for _, m := range reason.FindAllStringSubmatch(cells[0], -1) {
			require.NotContains(t, rows, m[1], "told twice")
			rows[m[1]] = cells[1:]
		}
	}
	return rows
}

func TestThePageOfFindingsIsComplete(t *testing.T) {
	refusals := constants(t, "reasons.go", nil)
	findings := constants(t, "findings_reasons.go", refusals)
	require.Greater(t, len(findings), 30)
	rows := documented(t, "Findings")
	told := map[string]bool{}
	for name, reason := range findings {
		told[reason] = true
		cells := rows[reason]
		if assert.Len(t, cells, 3, "docs/planning.md has no row with severity, meaning and what to do for %s (%s)", reason, name) {
			assert.Regexp(t, "Error|Warning|Info", cells[0])
			for _, cell := range cells {
				assert.NotEmpty(t, strings.TrimSpace(cell), reason)
			}
		}
	}
	for reason := range rows {
		assert.True(t, told[reason], "docs/planning.md tells of %s, which no finding has", reason)
	}
}

func TestThePageOfRefusalsIsComplete(t *testing.T) {
	rows := documented(t, "Refusals")
	for name, reason := range constants(t, "reasons.go", nil) {
		if !strings.HasPrefix(name, "Reason") {
			continue
		}
		if assert.Len(t, rows[reason], 2, "docs/planning.md has no row for %s", reason) {
			assert.Contains(t, []string{"terminal", "passing"}, strings.TrimSpace(rows[reason][0]))
			assert.NotEmpty(t, strings.TrimSpace(rows[reason][1]))
		}
	}
}

// A finding that is said with a text of its own would be in no table.
func TestEveryFindingIsSaidWithItsConstant(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	calls := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name, ok := call.Fun.(*ast.Ident); ok && (name.Name == "info" || name.Name == "warning" || name.Name == "failure") {
				calls++
				reason, ok := call.Args[0].(*ast.Ident)
				assert.True(t, ok && strings.HasPrefix(reason.Name, "Finding"), "%s: a finding without a constant", path)
			}
			return true
		})
	}
	assert.Greater(t, calls, 25)
}
