package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/manifest/crd"
	"github.com/refit-dev/refit/test/checkout"
)

var kinds = []string{"Machine", "MachineDeployment", "MachineDisruptionBudget", "Ledger"}

// shells of fragments: what an example that leaves out the rest of its object belongs into.
var shells = map[string]string{
	"strategy": "apiVersion: refit.dev/v1alpha1\nkind: MachineDeployment\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {}\n",
	"spec":     "apiVersion: refit.dev/v1alpha1\nkind: MachineDeployment\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {}\n",
	"drain":    "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: x}\nspec:\n  roles: [Worker]\n",
}

// whole is the example as an object: as it is, or laid into its shell; "" for what is none of ours.
func whole(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), ":")
	shell, known := shells[first]
	switch {
	case strings.Contains(text, "apiVersion: refit.dev/"):
		return text
	case !known:
		return ""
	case first == "spec":
		_, text, _ = strings.Cut(text, "\n")
		return shell + text
	}
	return shell + "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// The architecture writes with dots and braces what an object may have.
func sketch(page string) bool { return page == "docs/architecture.md" }

func TestEveryExampleOfAnObjectIsTakenByTheAPIServer(t *testing.T) {
	pages, err := Pages()
	require.NoError(t, err)
	seen := map[string]int{}
	for _, p := range pages {
		blocks, _ := p.Blocks()
		for _, b := range blocks {
			text := whole(b.Text)
			if b.Language != "yaml" || sketch(p.Path) || text == "" || strings.Contains(text, "kind: Simulation") {
				continue // scenarios have a test of their own, which plays them
			}
			objects, err := manifest.Read([]string{"-"}, manifest.Options{Namespace: "refit", Kinds: kinds, Check: crd.Check, Stdin: strings.NewReader(text)})
			assert.NoError(t, err, b.Where)
			for _, o := range objects {
				seen[o.Kind]++
			}
		}
	}
	for _, kind := range kinds {
		assert.Positive(t, seen[kind], "an example of a %s", kind)
	}
	assert.Greater(t, seen["MachineDeployment"], 5, "fragments count")
}

func TestAnExampleThatTheAPIServerRefusesIsSeen(t *testing.T) {
	for name, text := range map[string]string{
		"a field that is not there": "strategy: {type: Manual, speed: 3}",
		"a value that is refused":   "spec:\n  replicas: -1\n",
		"a whole object":            "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: x}\nspec: {roles: [Cook]}\n",
	} {
		_, err := manifest.Read([]string{"-"}, manifest.Options{Namespace: "refit", Kinds: kinds, Check: crd.Check, Stdin: strings.NewReader(whole(text))})
		assert.Error(t, err, name)
	}
}

func TestEveryYAMLBlockIsYAML(t *testing.T) {
	pages, err := Pages()
	require.NoError(t, err)
	for _, p := range pages {
		blocks, _ := p.Blocks()
		for _, b := range blocks {
			if b.Language == "yaml" && !sketch(p.Path) {
				for _, doc := range strings.Split(b.Text, "\n---\n") {
					var into any
					assert.NoError(t, yaml.UnmarshalStrict([]byte(doc), &into), b.Where)
				}
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// A link within the checkout leads to a file that is there and, with a #, to a heading of it.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	root, err := checkout.Root()
	require.NoError(t, err)
	pages, err := Pages()
	require.NoError(t, err)
	anchors := map[string]map[string]bool{}
	for _, p := range pages {
		anchors[p.Path] = anchorsOf(p)
	}
	for _, p := range pages {
		_, prose := p.Blocks()
		for _, found := range link.FindAllStringSubmatch(prose, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path := p.Path
			if target != "" {
				path = filepath.Join(filepath.Dir(p.Path), target)
				_, err := os.Stat(filepath.Join(root, path))
				assert.NoError(t, err, "%s links to %s", p.Path, found[1])
			}
			if anchor != "" {
				assert.True(t, anchors[path][anchor], "%s links to %s, and there is no such heading", p.Path, found[1])
			}
		}
	}
}

func anchorsOf(p Page) map[string]bool {
	out := map[string]bool{}
	_, prose := p.Blocks()
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(prose, -1) {
		plain := regexp.MustCompile(`[^\p{L}0-9 _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		out[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return out
}

// The README's index has every page.
func TestTheIndexNamesEveryPage(t *testing.T) {
	root, err := checkout.Root()
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	pages, err := Pages()
	require.NoError(t, err)
	for _, p := range pages {
		if filepath.Dir(p.Path) == "docs" {
			assert.Contains(t, string(readme), "("+p.Path+")")
		}
	}
}
