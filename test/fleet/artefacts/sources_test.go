package artefacts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const deb822Sources = `# the archive
Types: deb deb-src
URIs: http://archive.test/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://vendor.test/apt
Suites: stable
Components: main

Types: deb
URIs: http://off.test/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://embedded.test/debian
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----
`

func TestOnlySourcesOfTheSuiteAreTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		parse func(text, suite string) []string
		text  string
		want  []string
	}{
		"deb822": {parseDeb822, deb822Sources, []string{
			"deb [signed-by=/usr/share/keyrings/archive.gpg] http://archive.test/debian bookworm main contrib",
			"deb [signed-by=/usr/share/keyrings/archive.gpg] http://archive.test/debian bookworm-updates main contrib",
			"deb http://embedded.test/debian bookworm-security main",
		}},
		"one line": {parseOneLine, `# deb http://commented.test/debian bookworm main
deb http://plain.test/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://options.test/debian bookworm-security main
deb-src http://source.test/debian bookworm main
deb http://other.test/debian trixie main
deb broken
`, []string{
			"deb http://plain.test/debian bookworm main",
			"deb [arch=amd64 signed-by=/k.gpg] http://options.test/debian bookworm-security main",
		}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.parse(tc.text, "bookworm")) })
	}
}

func TestSourcesAreReadFromEveryFileOfTheDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sources.list.d"), 0o755))
	for path, text := range map[string]string{
		"sources.list":                        "deb http://a.test/debian bookworm main\n",
		"sources.list.d/b.list":               "deb http://b.test/debian bookworm-updates main\n",
		"sources.list.d/c.sources":            "Types: deb\nURIs: http://c.test/debian\nSuites: bookworm\nComponents: main\n",
		"sources.list.d/d.list.disabled-once": "deb http://d.test/debian bookworm main\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644))
	}
	got, err := suiteSources(dir, "bookworm")
	require.NoError(t, err)
	assert.Equal(t, "deb http://a.test/debian bookworm main\ndeb http://b.test/debian bookworm-updates main\n"+
		"deb http://c.test/debian bookworm main\n", got)
}

func TestAMachineWithoutSourcesOfTheSuiteIsToldSo(t *testing.T) {
	dir := t.TempDir()
	_, err := suiteSources(dir, "bookworm")
	require.ErrorContains(t, err, "bookworm")
	require.ErrorContains(t, err, dir)
}

func TestStanzasKeepContinuationLines(t *testing.T) {
	got := stanzas("Package: a\nDescription: short\n long one\n .\n\n\nPackage: b\n")
	assert.Equal(t, []map[string]string{{"Package": "a", "Description": "short\nlong one\n."}, {"Package": "b"}}, got)
}
