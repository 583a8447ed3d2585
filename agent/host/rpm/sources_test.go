package rpm

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const repoText = `# ours
[kubernetes]
name = Kubernetes
baseurl = https://pkgs.example.com/v1.36/rpm/
	https://mirror.example.com/v1.36/rpm/
enabled=1
gpgcheck=1
gpgkey=https://pkgs.example.com/v1.36/rpm/repodata/repomd.xml.key
exclude=kubelet kubeadm,kubectl

[off]
baseurl=https://pkgs.example.com/off/
enabled=0
; a comment with baseurl=https://pkgs.example.com/v1.36/rpm/
`

func bare(t *testing.T) *host {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(root+reposDir, 0o755))
	return &host{RPM: New(root), t: t}
}

func TestSourcesAreReadTheWayDnfReadsThem(t *testing.T) {
	h := bare(t)
	h.write(reposDir+"/kubernetes.repo", repoText)
	h.write(reposDir+"/ignored.txt", repoText)
	sources, err := h.Sources(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	assert.Equal(t, []upgrade.SourceFacts{{
		File: "/etc/yum.repos.d/kubernetes.repo", Line: 2, URI: "https://pkgs.example.com/v1.36/rpm/",
		SignedBy: "https://pkgs.example.com/v1.36/rpm/repodata/repomd.xml.key",
	}}, sources)
}

// B17: the repository of one minor becomes that of the next, and everything else of the file stays.
func TestASwitchChangesOneURIAndIsUndoneByItsInverse(t *testing.T) {
	h := bare(t)
	h.write(reposDir+"/kubernetes.repo", repoText)
	change := upgrade.SourceChange{Name: "kubernetes", File: "/etc/yum.repos.d/kubernetes.repo", From: "https://pkgs.example.com/v1.36/rpm/", To: "https://pkgs.example.com/v1.37/rpm"}
	require.NoError(t, h.Switch(t.Context(), change))
	text := h.read(reposDir + "/kubernetes.repo")
	assert.Contains(t, text, "baseurl = https://pkgs.example.com/v1.37/rpm\n\thttps://mirror.example.com/v1.36/rpm/\n")
	assert.Contains(t, text, "gpgkey=https://pkgs.example.com/v1.36/rpm/repodata/repomd.xml.key\nexclude=kubelet kubeadm,kubectl\n")
	assert.Contains(t, text, "; a comment with baseurl=https://pkgs.example.com/v1.36/rpm/")
	require.NoError(t, h.Switch(t.Context(), change), "again is fine")
	change.From, change.To = change.To, change.From
	require.NoError(t, h.Switch(t.Context(), change))
	assert.Equal(t, repoText, h.read(reposDir+"/kubernetes.repo"))

	change.From = "https://elsewhere.example.com/"
	change.To = "https://elsewhere.example.com/2/"
	assertReason(t, h.Switch(t.Context(), change), "SourceMissing")
	for _, file := range []string{"/etc/passwd", "/etc/yum.repos.d/../passwd", "/etc/yum.repos.d/x.conf", "etc/yum.repos.d/x.repo"} {
		change.File = file
		assertReason(t, h.Switch(t.Context(), change), "SourceInvalid")
	}
}

func TestANewSourceIsWrittenWithItsKeyAndBothChecks(t *testing.T) {
	h := bare(t)
	change := upgrade.SourceChange{Name: "mirror", File: "/etc/yum.repos.d/mirror.repo", To: "https://mirror.corp/v1.37/rpm/", SignedBy: "refit-kubernetes"}
	assertReason(t, h.Switch(t.Context(), change), "KeyringMissing")
	h.write(keyringDir+"/refit-kubernetes.asc", "key")
	require.NoError(t, h.Switch(t.Context(), change))
	assert.Equal(t, "[mirror]\nname=mirror\nbaseurl=https://mirror.corp/v1.37/rpm/\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/refit-kubernetes.asc\n",
		h.read(reposDir+"/mirror.repo"))
	change.From, change.To = change.To, ""
	require.NoError(t, h.Switch(t.Context(), change))
	assert.NoFileExists(t, h.path(reposDir, "mirror.repo"))
	change.From, change.To, change.Name = "", "https://mirror.corp/\nenabled=0", "x"
	assertReason(t, h.Switch(t.Context(), change), "SourceInvalid")
}

func TestTheKeysThatSpecNamesAreWrittenAndTakenBack(t *testing.T) {
	const uri, other = "https://pkgs.example.com/v1.36/rpm/", "https://pkgs.example.com/v1.37/rpm/"
	const key = "file:///etc/pki/rpm-gpg/RPM-GPG-KEY-refit"
	head := "# ours\n[kubernetes]\nname=Kubernetes\nbaseurl=" + uri + "\n"
	tail := "exclude=kubelet\n\n[other]\nbaseurl=https://pkgs.example.com/other/\ngpgkey=https://pkgs.example.com/other.key\n"
	for name, tc := range map[string]struct {
		was, before, after, undone string
	}{
		"one for another":                 {"https://a/k", "gpgkey=https://a/k\n", "gpgkey=" + key + "\n", "gpgkey=https://a/k\n"},
		"one for several":                 {"https://a/k file:///b", "gpgkey=https://a/k\n# why\n\tfile:///b\n", "gpgkey=" + key + "\n# why\n", "gpgkey=https://a/k file:///b\n# why\n"},
		"one for none":                    {"", "", "", ""},
		"one that is there already":       {key, "GPGKEY = " + key + "\n", "GPGKEY = " + key + "\n", "GPGKEY = " + key + "\n"},
		"one for one that is there twice": {"file:///b", "gpgkey=file:///a\ngpgkey=file:///b\n", "gpgkey=" + key + "\n", "gpgkey=file:///b\n"},
	} {
		for _, to := range []string{uri, other} {
			t.Run(name+", at "+to, func(t *testing.T) {
				h := bare(t)
				h.write(keyringDir+"/RPM-GPG-KEY-refit", "key")
				h.write(reposDir+"/k.repo", head+tc.before+tail)
				change := upgrade.SourceChange{
					Name: "kubernetes", File: "/etc/yum.repos.d/k.repo", From: uri, To: to, SignedBy: "refit", Was: &upgrade.SourceWords{SignedBy: tc.was},
				}
				want := head + tc.after + tail
				if tc.was == "" {
					want = head + strings.Replace(tail, "\n\n", "\ngpgkey="+key+"\n\n", 1)
				}
				for range 2 {
					require.NoError(t, h.Switch(t.Context(), change))
					assert.Equal(t, strings.Replace(want, uri, to, 1), h.read(reposDir+"/k.repo"))
				}
				require.NoError(t, os.Remove(h.path(keyringDir, "RPM-GPG-KEY-refit")), "going back needs nothing of the host")
				for range 2 {
					require.NoError(t, h.Switch(t.Context(), change.Back()))
					assert.Equal(t, head+tc.undone+tail, h.read(reposDir+"/k.repo"))
				}
			})
		}
	}
}

func TestKeysThatCannotBeWrittenLeaveTheFileAlone(t *testing.T) {
	h := bare(t)
	h.write(reposDir+"/kubernetes.repo", repoText)
	change := upgrade.SourceChange{
		Name: "kubernetes", File: "/etc/yum.repos.d/kubernetes.repo", From: "https://pkgs.example.com/v1.36/rpm/", To: "https://pkgs.example.com/v1.36/rpm/",
		SignedBy: "absent", Was: &upgrade.SourceWords{},
	}
	assertReason(t, h.Switch(t.Context(), change), "KeyringMissing")
	change.SignedBy = "x\x1by"
	assertReason(t, h.Switch(t.Context(), change), "KeyringInvalid")
	// The second line of a baseurl is a mirror of the first, not a repository of its own.
	change.From, change.To, change.SignedBy = "https://mirror.example.com/v1.36/rpm/", "https://mirror.example.com/v1.36/rpm/", "/a"
	assertReason(t, h.Switch(t.Context(), change), "SourceMissing")
	assert.Equal(t, repoText, h.read(reposDir+"/kubernetes.repo"))
}

// dnf itself finds the key that was written, and believes the repository's packages by it.
func TestDnfGoesByTheKeysThatWereWritten(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	h.installs(kubelet("1.36.3-1"))
	h.configure(r.uri("v1.37"), "repo_gpgcheck=1\n")
	key := h.trust("refit")
	h.write(keyringDir+"/kubernetes.asc", "no key")
	sources, err := h.Sources(t.Context(), nil)
	require.NoError(t, err)
	assert.NotContains(t, h.dnf("upgrade", "--downloadonly"), "Complete!")
	change := upgrade.SourceChange{
		Name: "kubernetes", File: sources[0].File, From: sources[0].URI, To: sources[0].URI, SignedBy: "refit", Was: &upgrade.SourceWords{SignedBy: sources[0].SignedBy},
	}
	require.NoError(t, h.Switch(t.Context(), change))
	// dnf looks for the key on the machine, not in the root.
	h.write(reposDir+"/kubernetes.repo", strings.Replace(h.read(reposDir+"/kubernetes.repo"), "file://"+key, "file://"+h.path(key), 1))
	assert.Contains(t, h.dnf("upgrade", "--downloadonly"), "Complete!")
}

func TestVariablesOfAURIAreFilledInAsDnfDoes(t *testing.T) {
	h := bare(t)
	h.Options = []string{"--dbpath=/var/lib/rpm"}
	h.write("etc/os-release", "ID=rocky\nVERSION_ID=\"9.4\"\n")
	h.write("etc/dnf/vars/site", "corp\n")
	assert.Equal(t, "https://corp.example.com/9.4/"+basearch()+"/$other", h.expand(t.Context(), "https://$site.example.com/${releasever}/$basearch/$other"))
}

// Of dnf's own copy of an index it is read what a repository offers; what Refit was told of it counts where there is none.
func TestWhatARepositoryOffersIsKnownWithoutFetching(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"), rpmfile{name: "kubeadm", version: "1.37.2-1"})
	h.configure(r.uri("v1.37"), "")
	sources, err := h.Sources(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	assert.Empty(t, sources[0].Provides, "nobody asked yet")
	h.candidates(r, "kubelet", "kubeadm")
	r.Answer(500)
	sources, err = h.Sources(t.Context(), []string{"kubelet", "kubectl"})
	require.NoError(t, err)
	assert.Equal(t, []string{"kubelet"}, sources[0].Provides)
	r.Answer(0)
	require.NoError(t, os.Remove(string(h.offers())))
	indexes, err := h.Indexes(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	assert.Empty(t, indexes)
	h.dnf("makecache")
	r.Answer(500)
	indexes, err = h.Indexes(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	require.Len(t, indexes, 1)
	require.Len(t, indexes[0].Candidates, 1)
	assert.Equal(t, "1.37.2-1", indexes[0].Candidates[0].Version)
	sources, err = h.Sources(t.Context(), []string{"kubelet", "kubectl"})
	require.NoError(t, err)
	assert.Equal(t, []string{"kubelet"}, sources[0].Provides)
}
