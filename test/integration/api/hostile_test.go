package api

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hostile is what a value ends with, or becomes, to be more than a value where a shell, a path, a
// file of lines or a program in C reads it.
var hostile = map[string]func(string) string{
	"a command":      func(s string) string { return s + "; id" },
	"a substitution": func(s string) string { return s + "$(id)" },
	"backticks":      func(s string) string { return s + "`id`" },
	"a pipe":         func(s string) string { return s + "|id" },
	"a quote":        func(s string) string { return s + `"` },
	"a newline":      func(s string) string { return s + "\n" },
	"a second line":  func(s string) string { return s + "\r\nTrusted: yes" },
	"a NUL":          func(s string) string { return s + "\x00" },
	"steps back":     func(string) string { return "../../etc/passwd" },
	"an option":      func(string) string { return "--allow-unauthenticated" },
	"a bracket":      func(s string) string { return s + " [trusted=yes]" },
}

// freeText are fields in which any text may stand, and why it does no harm.
var freeText = map[string]string{
	`kubelet\.configuration\.`:    "judged by the host, field by field, and written as YAML by a library",
	`node\.(labels|taints)`:       "goes to the API server of the Node, which judges it, and to no host",
	`(cel|query)$`:                "a program of its own language, which the coordinator evaluates and no host sees",
	`selector\.matchLabels\.`:     "compared with labels",
	`rollingUpdate\.topologyKey$`: "compared with the keys of labels",
}

// leaves calls visit with a copy of the object for each text in it, and how to set that.
func leaves(value any, place string, set func(any), visit func(place, text string, set func(any))) {
	switch v := value.(type) {
	case string:
		visit(place, v, set)
	case map[string]any:
		for name, below := range v {
			leaves(below, strings.TrimPrefix(place+"."+name, "."), func(to any) { v[name] = to }, visit)
		}
	case []any:
		for i, below := range v {
			leaves(below, fmt.Sprintf("%s[%d]", place, i), func(to any) { v[i] = to }, visit)
		}
	}
}

func TestNoTextOfASpecIsMoreThanAValue(t *testing.T) {
	inTemplate := strings.NewReplacer("roles: [ControlPlane, Etcd, Worker]\n", "", "availability: InService\n", "", "paused: true\n", "").Replace(full)
	template := "selector: {}\ntemplate:\n  spec:\n    " + strings.ReplaceAll(strings.TrimSpace(inTemplate), "\n", "\n    ") + "\n"
	for name, o := range map[string]*unstructured.Unstructured{
		"Machine": object(t, "Machine", "hostile", full), "MachineDeployment": object(t, "MachineDeployment", "hostile", fullDeployment),
		"template": object(t, "MachineDeployment", "hostile", template),
	} {
		r := admin.Resource(gvr(resources[o.GetKind()])).Namespace(namespace)
		dry := metav1.CreateOptions{FieldValidation: "Strict", DryRun: []string{metav1.DryRunAll}}
		_, err := r.Create(t.Context(), o, dry)
		require.NoError(t, err, "as it stands it is good")
		tried := 0
		leaves(o.Object["spec"], "", nil, func(place, text string, set func(any)) {
			for pattern := range maps.Keys(freeText) {
				if regexp.MustCompile(pattern).MatchString(place) {
					return
				}
			}
			for what, spoil := range hostile {
				set(spoil(text))
				_, err := r.Create(t.Context(), o, dry)
				assert.Error(t, err, "%s: %s with %s is taken", name, place, what)
				tried++
			}
			set(text)
		})
		assert.Greater(t, tried, 100, name)
	}
}

// Names become names of files and units on the host.
func TestNoNameIsMoreThanAName(t *testing.T) {
	for what, spoil := range hostile {
		o := object(t, "Machine", spoil("w1"), "roles: [Worker]")
		_, err := machines(admin).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		assert.Error(t, err, what)
	}
}
