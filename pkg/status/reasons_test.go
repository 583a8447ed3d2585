package status_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	reasonName  = regexp.MustCompile(`^(Reason|reason|Class)[A-Z]`)
	reasonShape = regexp.MustCompile(`^[A-Z][A-Za-z]{3,}$`)
	// refusers make a refusal or a failed step of a reason and a text.
	refusers = []string{"refuse", "refusal", "wait", "fail", "Refuse", "Wait"}
)

// reasonsIn are the reasons that a file of ours gives: constants, refusals, fields of that name and tables of them.
func reasonsIn(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	var out []string
	take := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && reasonShape.MatchString(text) {
				out = append(out, text)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, v := range n.Values {
				if reasonName.MatchString(n.Names[i].Name) {
					take(v)
				}
			}
		case *ast.CallExpr:
			f, _ := n.Fun.(*ast.Ident)
			if method, ok := n.Fun.(*ast.SelectorExpr); ok {
				f = method.Sel
			}
			if f != nil && len(n.Args) > 0 && slices.Contains(refusers, f.Name) {
				take(n.Args[0])
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Reason" {
				take(n.Value)
			}
		case *ast.AssignStmt:
			if to, ok := n.Lhs[0].(*ast.SelectorExpr); ok && to.Sel.Name == "Reason" {
				take(n.Rhs[0])
			}
		case *ast.CompositeLit: // a row of a table: pattern, reason, …
			if n.Type == nil && len(n.Elts) > 1 {
				take(n.Elts[1])
			}
		}
		return true
	})
	return out
}

// given are all reasons that agent and coordinator give, with the file that does.
func given(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, root := range []string{"../../agent", "../../coordinator", "../../pkg/status", "../../pkg/drain", "../../pkg/upgrade/reasons.go"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "fake/") || strings.Contains(path, "fleettest/") || strings.Contains(path, "coordinator/simulation/") { // a simulated host speaks for an agent
				return err
			}
			for _, reason := range reasonsIn(t, path) {
				out[reason] = path
			}
			return nil
		})
		require.NoError(t, err)
	}
	return out
}

// told are the reasons in the first column of a page's tables, which has no reason twice.
func told(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	require.NoError(t, err)
	out := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `") && !strings.HasPrefix(line, "|`") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for _, m := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(cells[0], -1) {
			assert.False(t, page == "reasons.md" && out[m[1]], "%s tells of %s twice", page, m[1])
			assert.GreaterOrEqual(t, len(cells), 3, "%s: %s has no meaning or nothing to do", page, m[1])
			out[m[1]] = true
		}
	}
	return out
}

func TestThePagesOfReasonsAreComplete(t *testing.T) {
	reasons, page := given(t), told(t, "reasons.md")
	require.Greater(t, len(reasons), 90)
	elsewhere := told(t, "planning.md")
	for reason := range told(t, "drain.md") {
		elsewhere[reason] = true
	}
	internal := []string{"MachineDeleted", "SpecChanged", "PlanChanged", "StandbyNotNeeded"} // of events only: why a slot was taken back
	for reason, path := range reasons {
		if !page[reason] && !elsewhere[reason] && !slices.Contains(internal, reason) {
			t.Errorf("no page of docs has a row for %s, which %s gives", reason, path)
		}
	}
	for reason := range page {
		assert.NotEmpty(t, reasons[reason], "docs/reasons.md tells of %s, which nothing gives", reason)
	}
}
