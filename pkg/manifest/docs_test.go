package manifest_test

import (
	"os"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// alike are fields whose parts are documented elsewhere.
var alike = map[string]bool{"kubeadm": true, "items[].hops[].steps[]": true}

// paths are the fields of a type, as they are written in a document.
func paths(t reflect.Type, prefix string) map[string]bool {
	out := map[string]bool{}
	for _, f := range manifest.Fields(t) {
		path, inner := prefix+f.Name, f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				path += "[]"
			}
			inner = inner.Elem()
		}
		out[path] = true
		if !alike[path] && inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() && inner.PkgPath() == t.PkgPath() {
			for below := range paths(inner, path+".") {
				out[below] = true
			}
		}
	}
	return out
}

var documented = regexp.MustCompile("(?m)^\\| `([A-Za-z0-9.\\[\\]]+)` \\| ([^|\n]+) \\|$")

func TestEveryFieldOfTheFactsIsDocumentedAndNoOther(t *testing.T) {
	assertDocumented(t, "../../docs/facts.md", paths(reflect.TypeFor[upgrade.Facts](), ""))
}

func TestEveryFieldOfAPlanListIsDocumentedAndNoOther(t *testing.T) {
	assertDocumented(t, "../../docs/planlist.md", paths(reflect.TypeFor[preview.PlanList](), ""))
}

func assertDocumented(t *testing.T, file string, want map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	got := map[string]bool{}
	for _, row := range documented.FindAllStringSubmatch(string(text), -1) {
		got[row[1]] = true
		assert.NotEmpty(t, row[2], row[1])
	}
	assert.Equal(t, want, got)
}
