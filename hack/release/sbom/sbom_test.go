package sbom_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/hack/release/sbom"
)

var at = time.Unix(1_700_000_000, 0)

// built is a program with modules that are known here, twice. One of go test tells of no modules.
func built(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	one := filepath.Join(t.TempDir(), "program")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", one, "../testdata/program").CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(one)
	require.NoError(t, err)
	for _, dir := range []string{"linux-amd64", "linux-arm64"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, dir, "refit-agent"), data, 0o755))
	}
	return root
}

func write(t *testing.T, root string, programs ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, sbom.Write(&out, "v1.2.3", at, root, programs))
	return out.Bytes()
}

// The published schemas come with the library's module.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.5.schema.json", "spdx.schema.json", "jsf-0.82.schema.json"} {
		file := strings.Replace(name, "jsf-0.82.schema.json", "jsf-0.82.schemax.json", 1) // as the module has it
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		require.NoError(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		require.NoError(t, compiler.AddResource("http://cyclonedx.org/schema/"+name, doc))
	}
	out, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.5.schema.json")
	require.NoError(t, err)
	return out
}

func TestTheSBOMHoldsToItsSchema(t *testing.T) {
	s := schema(t)
	text := write(t, built(t), "linux-amd64/refit-agent", "linux-arm64/refit-agent")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, s.Validate(doc))

	delete(doc.(map[string]any), "bomFormat")
	require.Error(t, s.Validate(doc), "the schema refuses what is none")
}

func TestTheSBOMNamesProgramsAndWhatTheyAreMadeOf(t *testing.T) {
	var bom cdx.BOM
	require.NoError(t, json.Unmarshal(write(t, built(t), "linux-arm64/refit-agent", "linux-amd64/refit-agent"), &bom))
	assert.Equal(t, "2023-11-14T22:13:20Z", bom.Metadata.Timestamp)
	byRef := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		byRef[c.BOMRef] = c
	}
	assert.Len(t, byRef, len(*bom.Components), "each once")
	require.Contains(t, byRef, "linux-amd64/refit-agent")
	assert.Len(t, (*byRef["linux-amd64/refit-agent"].Hashes)[0].Value, 64)
	var named []string
	for ref := range byRef {
		named = append(named, ref)
	}
	all := strings.Join(named, "\n")
	assert.Contains(t, all, "pkg:golang/std@1.")
	assert.Contains(t, all, "pkg:golang/github.com/Masterminds/semver/v3@v3.")
	require.Len(t, *bom.Dependencies, 2)
	for _, d := range *bom.Dependencies {
		for _, ref := range *d.Dependencies {
			assert.Contains(t, byRef, ref)
		}
	}
}

func TestTheSameProgramsGiveTheSameSBOM(t *testing.T) {
	one := write(t, built(t), "linux-arm64/refit-agent", "linux-amd64/refit-agent")
	two := write(t, built(t), "linux-amd64/refit-agent", "linux-arm64/refit-agent")
	assert.Equal(t, string(one), string(two))
}

func TestWhatIsNoProgramIsNamed(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "text"), []byte("no program"), 0o644))
	require.ErrorContains(t, sbom.Write(&bytes.Buffer{}, "v1.2.3", at, root, []string{"text"}), "looking into text")
	require.ErrorContains(t, sbom.Write(&bytes.Buffer{}, "v1.2.3", at, root, []string{"nothing"}), "looking into nothing")
}
