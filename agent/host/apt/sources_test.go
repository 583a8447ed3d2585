package apt

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	oneLineSource = `# the public one
deb [signed-by=/etc/apt/keyrings/kubernetes.gpg arch=amd64] https://pkgs.k8s.io/core:/stable:/v1.29/deb/ /   # keep
#deb https://pkgs.k8s.io/core:/stable:/v1.29/deb/ /
deb-src https://example.com/src stable main
deb	https://deb.example.com/debian  bookworm  main contrib
debug nonsense
`
	deb822Source = `# Kubernetes
Types: deb
URIs: https://mirror.corp/kubernetes/v1.29/deb/
 https://second.corp/kubernetes/v1.29/deb/
Suites: /
# Signed-By: something
Signed-By: /usr/share/keyrings/k8s.gpg
X-Note: https://mirror.corp/kubernetes/v1.29/deb/

Types: deb deb-src
URIs: https://deb.example.com/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
Enabled: no
URIs: https://off.example.com/
Suites: /
`
)

func TestSourcesAreReadInBothForms(t *testing.T) {
	entries := parseOneLine("/etc/apt/sources.list.d/kubernetes.list", oneLineSource)
	require.Len(t, entries, 2)
	assert.Equal(t, upgrade.SourceFacts{
		File: "/etc/apt/sources.list.d/kubernetes.list", Line: 2, URI: "https://pkgs.k8s.io/core:/stable:/v1.29/deb/",
		Suites: []string{"/"}, Components: []string{}, SignedBy: "/etc/apt/keyrings/kubernetes.gpg",
	}, entries[0].SourceFacts)
	assert.Equal(t, []string{"main", "contrib"}, entries[1].Components)

	entries = parseDeb822("/etc/apt/sources.list.d/k8s.sources", deb822Source)
	require.Len(t, entries, 3)
	assert.Equal(t, "https://mirror.corp/kubernetes/v1.29/deb/", entries[0].URI)
	assert.Equal(t, "https://second.corp/kubernetes/v1.29/deb/", entries[1].URI)
	assert.Equal(t, "/usr/share/keyrings/k8s.gpg", entries[0].SignedBy)
	assert.Equal(t, []string{"bookworm", "bookworm-updates"}, entries[2].Suites)
	assert.Equal(t, "/etc/apt/sources.list.d/k8s.sources:2", entries[2].key)
	assert.Equal(t, 10, entries[2].Line)
}

func TestSwitchingChangesOneURIAndNothingElse(t *testing.T) {
	for name, tc := range map[string]struct{ file, content, from, to, want string }{
		"one-line": {
			file: "/etc/apt/sources.list.d/kubernetes.list", content: oneLineSource,
			from: "https://pkgs.k8s.io/core:/stable:/v1.29/deb", to: "https://pkgs.k8s.io/core:/stable:/v1.30/deb/",
			want: `# the public one
deb [signed-by=/etc/apt/keyrings/kubernetes.gpg arch=amd64] https://pkgs.k8s.io/core:/stable:/v1.30/deb/ /   # keep
#deb https://pkgs.k8s.io/core:/stable:/v1.29/deb/ /
deb-src https://example.com/src stable main
deb	https://deb.example.com/debian  bookworm  main contrib
debug nonsense
`,
		},
		"deb822, with another URI and the same text in a field that is no URI": {
			file: "/etc/apt/sources.list.d/k8s.sources",
			from: "https://mirror.corp/kubernetes/v1.29/deb/", to: "https://mirror.corp/kubernetes/v1.30/deb/",
			content: "Types: deb\nURIs: https://mirror.corp/kubernetes/v1.29/deb/\n https://second.corp/x\nSuites: /\nX-Note: https://mirror.corp/kubernetes/v1.29/deb/\n",
			want:    "Types: deb\nURIs: https://mirror.corp/kubernetes/v1.30/deb/\n https://second.corp/x\nSuites: /\nX-Note: https://mirror.corp/kubernetes/v1.29/deb/\n",
		},
		"no line end at the end": {
			file: "/etc/apt/sources.list", content: "deb https://a.example.com/v1/ /", from: "https://a.example.com/v1/", to: "https://a.example.com/v2/",
			want: "deb https://a.example.com/v2/ /",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			require.NoError(t, os.WriteFile(h.path(tc.file), []byte(tc.content), 0o640))
			forth := upgrade.SourceChange{File: tc.file, From: tc.from, To: tc.to}
			require.NoError(t, h.Switch(t.Context(), forth))
			assert.Equal(t, tc.want, h.read(tc.file))
			require.NoError(t, h.Switch(t.Context(), forth), "again is fine")
			assert.Equal(t, tc.want, h.read(tc.file))
			info, err := os.Stat(h.path(tc.file))
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())

			require.NoError(t, h.Switch(t.Context(), upgrade.SourceChange{File: tc.file, From: tc.to, To: tc.from}))
			require.NoError(t, h.Switch(t.Context(), forth))
			assert.Equal(t, tc.want, h.read(tc.file))
		})
	}
}

func TestWhatSpecSaysOfASourceIsWrittenAndTakenBack(t *testing.T) {
	const uri, next = "https://mirror.corp/v1.30/deb/", "https://mirror.corp/v1.31/deb/"
	flat := &upgrade.SourceWords{Suites: []string{"/"}, SignedBy: "/etc/apt/keyrings/old.gpg"}
	for name, tc := range map[string]struct {
		file, content, want string
		change              upgrade.SourceChange
	}{
		"the keyring of a line": {
			file:    "/etc/apt/sources.list.d/k8s.list",
			content: "# mine\ndeb [arch=amd64 signed-by=/etc/apt/keyrings/old.gpg] https://mirror.corp/v1.30/deb/ / # keep\ndeb https://deb.example.com/debian bookworm main\n",
			want:    "# mine\ndeb [arch=amd64 signed-by=/etc/apt/keyrings/new.asc] https://mirror.corp/v1.30/deb/ / # keep\ndeb https://deb.example.com/debian bookworm main\n",
			change:  upgrade.SourceChange{From: uri, To: uri, Suites: []string{"/"}, SignedBy: "new", Was: flat},
		},
		"URI, suite and component of a line without options": {
			file:    "/etc/apt/sources.list",
			content: "deb https://mirror.corp/v1.30/deb/ /",
			want:    "deb [signed-by=/etc/apt/keyrings/new.asc] https://mirror.corp/v1.31/deb/ stable main",
			change:  upgrade.SourceChange{From: uri, To: next, Suites: []string{"stable"}, Components: []string{"main"}, SignedBy: "new", Was: &upgrade.SourceWords{Suites: []string{"/"}}},
		},
		"a line of the same URI with another suite stays": {
			file:    "/etc/apt/sources.list",
			content: "deb [https://mirror.corp/v1.30/deb/] https://mirror.corp/v1.30/deb/ one main\ndeb [arch=amd64] https://mirror.corp/v1.30/deb/ two main\n",
			want:    "deb [https://mirror.corp/v1.30/deb/] https://mirror.corp/v1.30/deb/ one main\ndeb [arch=amd64 signed-by=/etc/apt/keyrings/new.asc] https://mirror.corp/v1.30/deb/ three main\n",
			change:  upgrade.SourceChange{From: uri, To: uri, Suites: []string{"three"}, Components: []string{"main"}, SignedBy: "new", Was: &upgrade.SourceWords{Suites: []string{"two"}, Components: []string{"main"}}},
		},
		"a line with two keys, one by its fingerprint": {
			file:    "/etc/apt/sources.list",
			content: "deb [signed-by=/etc/apt/keyrings/old.gpg,DE15B14486CD377B9E876E1A234654DA9A296436] https://mirror.corp/v1.30/deb/ /\n",
			want:    "deb [signed-by=/etc/apt/keyrings/new.asc] https://mirror.corp/v1.30/deb/ /\n",
			change:  upgrade.SourceChange{From: uri, To: uri, Suites: []string{"/"}, SignedBy: "new", Was: &upgrade.SourceWords{Suites: []string{"/"}, SignedBy: "/etc/apt/keyrings/old.gpg,DE15B14486CD377B9E876E1A234654DA9A296436"}},
		},
		"a stanza with a key of its own, which stays": {
			file:    "/etc/apt/sources.list.d/k8s.sources",
			content: "Types: deb\nURIs: https://mirror.corp/v1.30/deb/\nSuites: old\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n",
			want:    "Types: deb\nURIs: https://mirror.corp/v1.30/deb/\nSuites: one\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n",
			change:  upgrade.SourceChange{From: uri, To: uri, Suites: []string{"one"}, Components: []string{"main"}, SignedBy: "new", Was: &upgrade.SourceWords{Suites: []string{"old"}, Components: []string{"main"}}},
		},
		"a stanza, and no other": {
			file:    "/etc/apt/sources.list.d/k8s.sources",
			content: "Types: deb\nURIs: https://mirror.corp/v1.30/deb/\nSuites: /\nSigned-By: /etc/apt/keyrings/old.gpg\n# keep\nX-Note: /\n\nTypes: deb\nURIs: https://x.example/\nSuites: /\n",
			want:    "Types: deb\nURIs: https://mirror.corp/v1.30/deb/\nSuites: one two\nSigned-By: /etc/apt/keyrings/new.asc\n# keep\nX-Note: /\n\nTypes: deb\nURIs: https://x.example/\nSuites: /\n",
			change:  upgrade.SourceChange{From: uri, To: uri, Suites: []string{"one", "two"}, SignedBy: "new", Was: flat},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.trust("new")
			tc.change.File = tc.file
			require.NoError(t, os.WriteFile(h.path(tc.file), []byte(tc.content), 0o640))
			for range 2 {
				require.NoError(t, h.Switch(t.Context(), tc.change))
				assert.Equal(t, tc.want, h.read(tc.file))
			}
			for range 2 {
				require.NoError(t, h.Switch(t.Context(), tc.change.Back()))
				assert.Equal(t, tc.content, h.read(tc.file))
			}
		})
	}
}

func TestASourceThatCannotSayWhatSpecSaysIsLeftAlone(t *testing.T) {
	const uri = "https://mirror.corp/v1.30/deb/"
	was := &upgrade.SourceWords{Suites: []string{"/"}}
	for name, tc := range map[string]struct {
		file, content, reason string
		change                upgrade.SourceChange
	}{
		"two suites on a line":       {"/etc/apt/sources.list", "deb " + uri + " /\n", "SourceInvalid", upgrade.SourceChange{Suites: []string{"a", "b"}, SignedBy: "new", Was: was}},
		"a keyring that is missing":  {"/etc/apt/sources.list", "deb " + uri + " /\n", "KeyringMissing", upgrade.SourceChange{Suites: []string{"/"}, SignedBy: "none", Was: was}},
		"a key that is an option":    {"/etc/apt/sources.list", "deb " + uri + " /\n", "KeyringMissing", upgrade.SourceChange{Suites: []string{"/"}, SignedBy: "/x]trusted=yes", Was: was}},
		"no such suite any more":     {"/etc/apt/sources.list", "deb " + uri + " x main\n", "SourceMissing", upgrade.SourceChange{Suites: []string{"/"}, SignedBy: "new", Was: was}},
		"a stanza with other URIs":   {"/etc/apt/sources.list.d/k.sources", "Types: deb\nURIs: " + uri + " https://x.example/\nSuites: /\n", "SourceInvalid", upgrade.SourceChange{Suites: []string{"/"}, SignedBy: "new", Was: was}},
		"a suite that is an option":  {"/etc/apt/sources.list", "deb " + uri + " /\n", "SourceInvalid", upgrade.SourceChange{Suites: []string{"-x"}, SignedBy: "new", Was: was}},
		"a suite of several of them": {"/etc/apt/sources.list", "deb " + uri + " /\n", "SourceInvalid", upgrade.SourceChange{Suites: []string{"a b"}, SignedBy: "new", Was: was}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.trust("new")
			tc.change.File, tc.change.From, tc.change.To = tc.file, uri, uri
			require.NoError(t, os.WriteFile(h.path(tc.file), []byte(tc.content), 0o640))
			assertReason(t, h.Switch(t.Context(), tc.change), tc.reason)
			assert.Equal(t, tc.content, h.read(tc.file))
		})
	}
}

func TestANewSourceIsMadeAndTakenBack(t *testing.T) {
	h := newHost(t)
	h.trust("kubernetes")
	change := upgrade.SourceChange{Name: "kubernetes", File: "/etc/apt/sources.list.d/refit-kubernetes.sources", To: "https://mirror.corp/v1.30/deb/", Suites: []string{"/"}, SignedBy: "kubernetes"}
	require.NoError(t, h.Switch(t.Context(), change))
	entries, err := h.entries()
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, change.To, entries[0].URI)

	change.From, change.To = change.To, ""
	require.NoError(t, h.Switch(t.Context(), change))
	require.NoError(t, h.Switch(t.Context(), change), "again is fine")
	assert.NoFileExists(t, h.path(change.File))
}

func TestASourceThatSomebodyChangedIsNotGuessed(t *testing.T) {
	h := newHost(t)
	file := "/etc/apt/sources.list.d/kubernetes.list"
	change := upgrade.SourceChange{File: file, From: "https://a.example.com/", To: "https://b.example.com/"}
	assertReason(t, h.Switch(t.Context(), change), "SourceMissing")
	require.NoError(t, os.WriteFile(h.path(file), []byte("deb https://c.example.com/ /\n"), 0o644))
	assertReason(t, h.Switch(t.Context(), change), "SourceMissing")
	for _, file := range []string{"/etc/passwd", "/etc/apt/sources.list.d/../../shadow.list", "/etc/apt/sources.list.d/x.sh", ""} {
		change.File = file
		assertReason(t, h.Switch(t.Context(), change), "SourceInvalid")
	}
}

func TestASourceShowsWhatItsIndexOnTheHostOffers(t *testing.T) {
	h := newHost(t)
	h.trust("kubernetes")
	r := newRepository(t, deb{name: "kubelet", version: "1"}, deb{name: "kubeadm", version: "1"}, deb{name: "other", version: "1"})
	require.NoError(t, os.WriteFile(h.path("etc/apt/sources.list.d/kubernetes.list"),
		[]byte("# one\ndeb [signed-by="+h.path("etc/apt/keyrings/kubernetes.asc")+"] "+r.uri()+" /\n"), 0o644))
	require.NoError(t, os.WriteFile(h.path("etc/apt/sources.list.d/more.sources"),
		[]byte("Types: deb\nURIs: "+r.uri()+"never-fetched/\nSuites: /\n"), 0o644))
	_, err := h.Runner.Run(t.Context(), cmd(h.apt("apt-get", "update")...))
	_ = err // the second source is not there, and that is the point

	facts, err := h.Sources(t.Context(), []string{"kubelet", "kubeadm", "kubectl"})
	require.NoError(t, err)
	require.Len(t, facts, 2)
	assert.Equal(t, []string{"kubeadm", "kubelet"}, facts[0].Provides)
	assert.Equal(t, "/etc/apt/sources.list.d/kubernetes.list", facts[0].File)
	assert.Empty(t, facts[1].Provides)

	indexes, err := h.Indexes(t.Context(), []string{"kubelet", "kubeadm", "kubectl"})
	require.NoError(t, err)
	require.Len(t, indexes, 1, "of a source without an index nothing is known")
	assert.Equal(t, []string{"kubelet", "kubeadm", "kubectl"}, indexes[0].Packages)
	f := upgrade.Facts{Packages: upgrade.PackageFacts{Indexes: indexes}}
	request := upgrade.CandidateRequest{Packages: []string{"kubelet", "kubectl"}, Sources: []upgrade.CandidateSource{
		{Name: "kubernetes", URI: r.uri(), Suites: []string{"/"}, SignedBy: "kubernetes.asc"},
	}}
	offered, unknown := f.Offered(request)
	assert.Empty(t, unknown)
	fetched, err := h.Candidates(t.Context(), request)
	require.NoError(t, err)
	require.NotEmpty(t, fetched)
	assert.Equal(t, fetched, offered, "the facts say what the host itself would be told")
}
