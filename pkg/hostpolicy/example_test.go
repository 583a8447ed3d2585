package hostpolicy

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheExampleFileIsThePolicyOfAHostWithoutOne(t *testing.T) {
	text, err := os.ReadFile("../../deploy/systemd/policy.yaml")
	require.NoError(t, err)
	p, err := Decode(text)
	require.NoError(t, err)
	for _, wish := range []SourceWish{{Name: "a", URI: "https://m/"}, {Name: "a", URI: "https://m/", Configured: true, SignedBy: "k"}, {Name: "a", URI: "https://m/", Configured: true, KeyKnown: true}} {
		assert.Equal(t, Policy{}.Source(wish), p.Source(wish))
	}
	assert.Nil(t, p.Package("kubelet"))
	assert.Nil(t, p.Hook("any"))
	assert.False(t, p.Removes("dropbear"))
	for _, kind := range StepKinds {
		assert.Nil(t, p.Step(kind))
		assert.Contains(t, string(text), kind, "it names every kind")
	}
	assert.NotEmpty(t, p.KubeletFields(map[string]any{"tlsMinVersion": "x"}))

	uncommented := regexp.MustCompile(`(?m)^( *)# ((?:hooks:$|  allow:|allow:).*)`).ReplaceAll(text, []byte("$1$2"))
	p, err = Decode(uncommented)
	require.NoError(t, err, string(uncommented))
	assert.Equal(t, []string{"*"}, p.Packages.Allow)
	assert.Equal(t, []string{"*"}, p.Hooks.Allow)
}

func TestEveryPolicyOfTheDocumentationIsRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/policy.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	require.NotEmpty(t, found)
	for _, m := range found {
		p, err := Decode(m[1])
		require.NoError(t, err)
		assert.NotEqual(t, Policy{}, p)
	}
	for _, field := range refusedKubeletFields {
		assert.Contains(t, string(text), "`"+field+"`")
	}
	for part, fields := range known {
		if part != "Policy" {
			for _, field := range regexp.MustCompile(`[a-z]+`).FindAllString(fields, -1) {
				assert.Regexp(t, "(?m)^\\| `"+regexp.MustCompile("^.").ReplaceAllStringFunc(part, func(s string) string { return string(s[0] + 32) })+"[.]"+field+"` ", string(text))
			}
		}
	}
}
