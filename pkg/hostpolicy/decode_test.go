package hostpolicy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPolicyIsReadWhole(t *testing.T) {
	p, err := Decode([]byte(`
sources:
  allow: [mirror.corp, "https://pkgs.k8s.io/core:/stable:/"]
  new: true
  keyrings: [kubernetes]
packages:
  allow: ["lib*", openssl]
  deny: [telnetd]
  remove: [dropbear]
hooks: {allow: [raid-check]}
steps: {deny: [Reboot]}
kubelet: {allow: [tlsMinVersion]}
`))
	require.NoError(t, err)
	assert.Equal(t, Policy{
		Sources:  Sources{Allow: []string{"mirror.corp", "https://pkgs.k8s.io/core:/stable:/"}, New: true, Keyrings: []string{"kubernetes"}},
		Packages: Packages{Allow: []string{"lib*", "openssl"}, Deny: []string{"telnetd"}, Remove: []string{"dropbear"}},
		Hooks:    Hooks{Allow: []string{"raid-check"}}, Steps: Steps{Deny: []string{"Reboot"}}, Kubelet: Kubelet{Allow: []string{"tlsMinVersion"}},
	}, p)
}

func TestAFileThatSaysNothingIsThePolicyOfAHostWithoutOne(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "comments": "# all as it is\n", "an empty document": "---\n# a\n", "no fields": "{}"} {
		p, err := Decode([]byte(text))
		require.NoError(t, err, name)
		assert.Equal(t, Policy{}, p, name)
	}
}

func TestWhatIsNotUnderstoodIsRefusedWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, says string }{
		"an unknown part":                    {"steps: {}\nhoks: {}\n", `line 2: there is no field "hoks"; known here: sources, packages, hooks, steps, kubelet`},
		"an unknown field":                   {"packages:\n  denied: [a]\n", `line 2: there is no field "denied"; known here: allow, deny, remove`},
		"another case":                       {"Packages: {}\n", `there is no field "Packages"`},
		"a field twice":                      {"hooks: {allow: [a]}\nhooks: {allow: [b]}\n", "line 2: mapping key"},
		"a text for a list":                  {"packages:\n  deny: telnet\n", "line 2: this is not a list of texts"},
		"a text for true":                    {"sources:\n  new: sometimes\n", "line 2: this is not true or false"},
		"a list for fields":                  {"hooks: [a]\n", "this is not fields of its own"},
		"a text for all":                     {"deny everything\n", "this is not fields of its own"},
		"a field without a value":            {"hooks:\n  allow:\n", "line 2: there is no value: write [] for none"},
		"an entry without a value":           {"hooks:\n  allow:\n  -\n", "line 3: there is no value"},
		"two documents":                      {"hooks: {allow: []}\n---\nhooks: {allow: ['*']}\n", "more in it than one document"},
		"an alias":                           {"hooks: {allow: &a ['*']}\npackages: {deny: *a}\n", "anchors, aliases, merges and tags"},
		"no YAML":                            {"hooks: [\n", "line "},
		"a pattern with an error":            {"hooks: {allow: ['[a']}\n", `line 1: hooks.allow: "[a" is no name`},
		"a pattern of no name":               {"packages:\n  deny:\n  - a\n  - 'b c'\n", `line 4: packages.deny: "b c" is no name`},
		"a step of no kind":                  {"steps: {deny: [reboot]}\n", `steps.deny: "reboot" is no step that can be denied: UnholdPackages`},
		"a step that keeps a host safe":      {"steps: {deny: [Verify]}\n", `"Verify" is no step that can be denied`},
		"a field that is free":               {"kubelet: {allow: [maxPods]}\n", `"maxPods" is no field of the kubelet's configuration that is refused otherwise`},
		"a keyring that is a path":           {"sources: {keyrings: [/etc/apt/keyrings/a.gpg]}\n", "no bare name of a keyring"},
		"a source with credentials":          {"sources: {allow: ['https://u:p@mirror/']}\n", "without user and query"},
		"a source that is a file":            {"sources: {allow: ['file:///srv']}\n", "neither a host such as mirror.corp"},
		"a source with steps back":           {"sources: {allow: ['https://m/a/../b']}\n", "neither a host"},
		"a source that is a pattern":         {"sources: {allow: ['*']}\n", "neither a host"},
		"more than anybody writes":           {"#" + strings.Repeat("a", MaxSize), "more than 65536 bytes"},
		"something that is said with a type": {"hooks: {allow: [!!binary aGk=]}\n", "line 1: write the value out"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Decode([]byte(tc.text))
			require.ErrorContains(t, err, tc.says)
			assert.Equal(t, Policy{}, p, "nothing is taken from a broken file")
		})
	}
}

// What is read is understood: no entry is of a kind that could never match, and no text that
// is not wholly read counts.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("sources: {allow: [mirror.corp, 'https://m/a/'], new: true, keyrings: [k]}\npackages: {allow: ['*'], deny: [a], remove: [b]}\n"))
	f.Add([]byte("hooks: {allow: []}\nsteps: {deny: [Reboot]}\nkubelet: {allow: [tlsMinVersion]}\n"))
	f.Add([]byte("a: &a [*a]\n<<: *a\n"))
	f.Add([]byte("---\n...\n--- !!null\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data)
		if err != nil {
			require.Equal(t, Policy{}, p)
			require.NotContains(t, err.Error(), "hostpolicy.", "it is said in the words of the file")
			return
		}
		for _, kind := range p.Steps.Deny {
			require.NotNil(t, p.Step(kind))
		}
		for _, name := range p.Kubelet.Allow {
			require.Empty(t, p.KubeletFields(map[string]any{name: "x"}))
		}
		require.NotNil(t, p.Source(SourceWish{Name: "a", URI: "file:///srv"}))
		require.NotNil(t, p.Source(SourceWish{Name: "a", URI: "https://u:p@mirror.corp/"}))
	})
}
