package apt

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const indexSeed = `Package: kubelet
Version: 1.37.2-1.1
Architecture: amd64
Maintainer: Kubernetes Authors <dev@kubernetes.io>
Installed-Size: 59932
Pre-Depends: init-system-helpers (>= 1.54~)
Depends: iptables (>= 1.4.21),
 kubernetes-cni (>= 1.2.0), mount | util-linux
Filename: ./amd64/kubelet_1.37.2-1.1_amd64.deb
Size: 13000000
SHA256: AB00000000000000000000000000000000000000000000000000000000000001
Description: Node agent
 .
 more

Package: no-digest
Version: 1
Size: -1

`

// An index is signed, but by whoever runs the mirror: nothing in it makes a size that
// could not be, or a candidate without a digest.
func FuzzIndex(f *testing.F) {
	f.Add(indexSeed)
	f.Add("Package: a\r\nSize: 1\r\n\r\n")
	f.Add(" continued before any field\n\nPackage\nVersion:\n")
	f.Add(strings.ReplaceAll(indexSeed, "59932", "-59932"))
	f.Add(strings.ReplaceAll(indexSeed, "59932", "9223372036854775807"))
	f.Add(strings.ReplaceAll(indexSeed, "13000000", "-13000000"))
	f.Fuzz(func(t *testing.T, text string) {
		visited := 0
		err := stanzas(strings.NewReader(text), func(s stanza) {
			visited++
			for field := range s {
				require.Contains(t, indexFields, field, "others are not kept")
			}
			c, ok := s.candidate("http://mirror.example")
			if !ok {
				return
			}
			require.Regexp(t, packagefile.Digest, c.SHA256)
			require.NotEmpty(t, c.Path)
			require.GreaterOrEqual(t, c.Size, int64(0))
			require.GreaterOrEqual(t, c.InstalledSize, int64(0))
			for _, d := range c.Depends {
				require.NotEmpty(t, d)
				require.Equal(t, strings.TrimSpace(d), d)
			}
		})
		require.NoError(t, err, "no line of a fuzz input is too long")
		require.LessOrEqual(t, visited, 1+strings.Count(text, "\n\n")+strings.Count(text, "\n\r\n"))
	})
}

func FuzzIndexTargets(f *testing.F) {
	f.Add("/etc/apt/sources.list.d/debian.sources:1\thttp://mirror.corp/debian/\t/var/lib/apt/lists/mirror.corp_debian_dists_bookworm_main_binary-amd64_Packages\n")
	f.Add("a\tb\n\t\t\n")
	f.Fuzz(func(t *testing.T, output string) {
		found := parseIndexes(output)
		require.LessOrEqual(t, len(found), 1+strings.Count(output, "\n"))
		for _, ix := range found {
			require.NotContains(t, ix.source+ix.base+ix.path, "\t")
			_, _ = requested(ix, []upgrade.CandidateSource{{URI: "a"}, {URI: "b"}})
		}
	})
}

func uris(entries []entry) []string {
	all := make([]string, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.URI)
	}
	return all
}

func parse(file, content string) []entry {
	if strings.HasSuffix(file, ".sources") {
		return parseDeb822(file, content)
	}
	return parseOneLine(file, content)
}

// Whoever reads a source file and whoever switches a URI in it agree about where its
// URIs are: after a switch the file reads as before, with one URI for another.
func FuzzSwitch(f *testing.F) {
	for _, seed := range []string{oneLineSource, deb822Source, "Types: deb\nURIs : http://a/\nSuites: /\n", "Types: deb\nURIs:http://a/\nSuites: /\n", "deb [x=y]http://a/ /\n", "deb [http://a/] http://a http://a/\n", "Types: deb\r\nURIs: http://a/\r\nSuites: /\r\n", "deb http://a/ / # http://a/\n", "deb [trusted=yes] http://a/ /\n"} {
		f.Add(seed, "http://a/", true)
		f.Add(seed, "http://a", false)
		f.Add(seed, "https://mirror.corp/kubernetes/v1.29/deb/", true)
		f.Add(seed, "https://pkgs.k8s.io/core:/stable:/v1.29/deb/", false)
	}
	f.Fuzz(func(t *testing.T, content, from string, stanzas bool) {
		const to = "https://refit.example/v1.99/"
		if checkURI(from) != nil || sameURI(from, to) || strings.Contains(content, "refit.example") {
			return // no plan has such a change
		}
		file := "/etc/apt/sources.list.d/x.list"
		if stanzas {
			file = "/etc/apt/sources.list.d/x.sources"
		}
		before := parse(file, content)
		want := uris(before)
		named := false
		for i := range want {
			if sameURI(want[i], from) {
				want[i], named = to, true
			}
		}
		out, replaced, present := replaceURI(file, content, from, to)
		require.False(t, present)
		if named {
			require.True(t, replaced, "%q is a source of %q", from, content)
		}
		after := parse(file, out)
		require.Equal(t, want, uris(after))
		for i := range after {
			after[i].URI = before[i].URI
		}
		require.Equal(t, before, after, "and nothing else has changed")
		require.Equal(t, strings.Count(content, "\n"), strings.Count(out, "\n"))
		again, replaced, _ := replaceURI(file, out, from, to)
		require.False(t, replaced)
		require.Equal(t, out, again)
	})
}

func FuzzSources(f *testing.F) {
	f.Add(oneLineSource)
	f.Add(deb822Source)
	f.Add("Types: deb\nURIs: http://a/ http://b/\nSuites: /\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ\n")
	f.Fuzz(func(t *testing.T, content string) {
		for _, file := range []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/x.sources"} {
			lines := strings.Split(content, "\n")
			for _, e := range parse(file, content) {
				require.Equal(t, file, e.File)
				require.NotEmpty(t, e.URI)
				require.Contains(t, content, e.URI)
				require.True(t, e.Line >= 1 && e.Line <= len(lines))
				require.NotContains(t, e.SignedBy, "BEGIN PGP")
			}
		}
	})
}

// What a plan has written reads back as what the plan says, with nothing beside it.
func FuzzWrittenSource(f *testing.F) {
	f.Add("https://mirror.corp/kubernetes/v1.30/deb/", "/", "")
	f.Add("http://mirror.corp/debian", "bookworm", "main")
	f.Add("file:///srv/mirror", "stable\nTrusted: yes", "main")
	f.Add("https://mirror.corp/a\u00a0b/", "/", "")
	f.Fuzz(func(t *testing.T, uri, suite, component string) {
		source := upgrade.CandidateSource{Name: "x", URI: uri, Suites: []string{suite}}
		if component != "" {
			source.Components = []string{component}
		}
		text, err := New(t.TempDir()).sourceText(source)
		if err != nil {
			assertReason(t, err, "SourceInvalid")
			return
		}
		entries := parseDeb822("x.sources", text)
		require.Len(t, entries, 1)
		require.Equal(t, uri, entries[0].URI)
		require.Equal(t, []string{suite}, entries[0].Suites)
		require.ElementsMatch(t, source.Components, entries[0].Components)
		require.Equal(t, 3+len(source.Components), strings.Count(text, "\n"), "no option that nobody asked for")
	})
}

func FuzzSourcePath(f *testing.F) {
	for _, seed := range []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/k8s.list", "/etc/apt/sources.list.d/../../shadow.list", "etc/apt/sources.list", "/etc/apt/sources.list.d/.list"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		path, err := New("/root").sourcePath(file)
		if err != nil {
			assertReason(t, err, "SourceInvalid")
			return
		}
		require.Equal(t, "/root"+file, path)
		require.Contains(t, []string{"/etc/apt", "/etc/apt/sources.list.d"}, filepath.Dir(file))
	})
}

func FuzzQuery(f *testing.F) {
	f.Add("kubelet\t1.36.2-1.1\tinstalled\tok\nruncd\t1.1~\thalf-configured\treinstreq\n", "kubelet", "1.36.2-1.1")
	f.Add("openssl\t\tconfig-files\tok\n\t\t\t\n", "a", "")
	f.Fuzz(func(t *testing.T, output, name, version string) {
		packages := parseQuery(output)
		require.LessOrEqual(t, len(packages), 1+strings.Count(output, "\n"))
		for _, p := range packages {
			require.NotEmpty(t, p.Name)
			require.NotContains(t, []string{"not-installed", "config-files"}, p.State)
		}
		if name == "" || strings.ContainsAny(name+version, "\t\n") {
			return
		}
		want := append(packages, upgrade.InstalledPackage{Name: name, Version: version, State: StateInstalled})
		if output != "" && !strings.HasSuffix(output, "\n") {
			output += "\n"
		}
		require.Equal(t, want, parseQuery(output+name+"\t"+version+"\tinstalled\tok\n"), "no line hides the next")
	})
}

func FuzzHolds(f *testing.F) {
	f.Add("adduser\t\t\t\t\tinstall\nkubelet\t\thold\nlibc6:amd64\thold\n")
	f.Add("hold\n\thold\n:amd64\thold\n")
	f.Fuzz(func(t *testing.T, output string) {
		holds := parseHolds(output)
		require.LessOrEqual(t, len(holds), strings.Count(output, "hold"))
		for _, name := range holds {
			require.NotEmpty(t, name)
			require.NotContains(t, name, ":")
		}
		require.Contains(t, parseHolds(output+"\nkubelet:amd64\t\t\thold\n"), "kubelet")
	})
}

// Whatever apt prints around it, a package that nobody asked for is never overlooked.
func FuzzSimulation(f *testing.F) {
	f.Add("NOTE: This is only a simulation!\nReading package lists...\nInst kubelet [1.36.2-1.1] (1.37.2-1.1 localhost [amd64])\nConf kubelet (1.37.2-1.1 localhost [amd64])\n", "evil", "2.0")
	f.Add("Remv telnet [0.17]\nPurg telnet [0.17]\nInst libc6:i386 (2.36 Debian:12/stable [i386])\n", "cilium", "1:1.0~rc1-1")
	f.Add("Inst \nInst a\nRemv\n", "x", "1")
	f.Fuzz(func(t *testing.T, output, name, version string) {
		changes := []upgrade.PackageChange{{Name: "kubelet", From: "1.36.2-1.1", To: "1.37.2-1.1"}, {Name: "telnet", From: "0.17"}}
		err := compare(output, changes, nil)
		if err == nil {
			for line := range strings.Lines(output) {
				words := strings.Fields(line)
				if len(words) > 1 && (strings.HasPrefix(line, "Inst ") || strings.HasPrefix(line, "Remv ") || strings.HasPrefix(line, "Purg ")) {
					base, _, _ := strings.Cut(words[1], ":")
					require.Contains(t, []string{"kubelet", "telnet"}, base, "%q", line)
				}
			}
		} else {
			var blocked *upgrade.Blocked
			require.ErrorAs(t, err, &blocked)
			require.NotEmpty(t, blocked.Reason)
		}
		if !kind.Name.MatchString(name) || name == "kubelet" || name == "telnet" {
			return
		}
		for _, line := range []string{
			"Inst " + name + " (" + version + " repo [amd64])", "Inst " + name + ":arm64 [1] (" + version + " repo [arm64]) []",
			"Inst " + name, "Remv " + name + " [" + version + "]", "Purg " + name + ":arm64 [1]", "Remv " + name,
		} {
			require.Error(t, compare(output+"\n"+line+"\n", changes, nil), "%q", line)
		}
	})
}

func FuzzFetchFailure(f *testing.F) {
	f.Add("Err:1 http://m InRelease\n  404  Not Found [IP: 10.0.0.1 80]\nE: The repository 'http://m InRelease' does not have a Release file.\n")
	f.Add("W: GPG error: EXPKEYSIG 234654DA9A296436 isv:kubernetes\nE: no\n")
	f.Add("E: Could not get lock /var/lib/dpkg/lock-frontend\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, output string) {
		for _, cause := range []error{nil, errors.New("exit status 100")} {
			var blocked *upgrade.Blocked
			require.ErrorAs(t, fetchFailure("fetching", output, cause), &blocked)
			require.NotEmpty(t, blocked.Reason)
			require.True(t, strings.HasPrefix(blocked.Message, "fetching: "))
		}
		_ = solverText(command.Result{Stdout: output})
	})
}

// What goes through becomes an operand of apt and a file name: it is one plain word.
func FuzzCheckChange(f *testing.F) {
	digest := strings.Repeat("0", 64)
	f.Add("kubelet", "1.36.2-1.1", "1.37.2-1.1", digest+".deb", digest)
	f.Add("kubelet-", "", "1", "../x", digest)
	f.Add("-o", "1", "", "", "")
	f.Add("a\nb", "1", "2\n", "f", digest)
	f.Fuzz(func(t *testing.T, name, from, to, file, digest string) {
		if kind.CheckChange(upgrade.PackageChange{Name: name, From: from, To: to, File: file, SHA256: digest}) != nil {
			return
		}
		require.False(t, strings.HasPrefix(name, "-"))
		require.False(t, strings.ContainsAny(name+from+to, " \t\r\n/*?[]()|;&$`'\"\\\x00"))
		if to != "" {
			require.Equal(t, file, filepath.Base(file))
			require.False(t, strings.HasPrefix(file, ".") || strings.HasPrefix(file, "-"))
			require.Equal(t, filepath.Base(kind.FileName(name, to)), kind.FileName(name, to))
		}
	})
}

// What apt's log says is told to people: on one line, short, and only of what is installed.
func FuzzHistory(f *testing.F) {
	f.Add(history)
	f.Add("Start-Date: 2026-11-30  12:53:42\nCommandline: apt-get install --yes --no-install-recommends dnf-plugins-core\nInstall: dnf-plugins-core:amd64 (4.3.1-3)\nRemove: zypper:amd64 (1.14.42-2)\nEnd-Date: 2026-11-30  12:53:47\n")
	f.Add("Start-Date: \x1b[31m" + strings.Repeat("x", 2000) + "\nRequested-By: \u202e\nInstall: kubelet (1), kubelet:i386 (0, 1)\n")
	f.Fuzz(func(t *testing.T, log string) {
		for name, text := range changedBy(log, map[string]string{"kubelet": "1.30.5-1.1", "runc": "1"}) {
			require.Contains(t, []string{"kubelet", "runc"}, name)
			require.LessOrEqual(t, len([]rune(text)), 420)
			require.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", text)
		}
		added := "\n\nStart-Date: 2099-01-01\nUpgrade: kubelet:amd64 (1.30.4-1.1, 1.30.5-1.1)\n"
		require.Contains(t, changedBy(log+added, map[string]string{"kubelet": "1.30.5-1.1"})["kubelet"], "2099-01-01", "no entry hides the next")
	})
}

func FuzzPackageFile(f *testing.F) {
	f.Add("kubelet\t1.37.2-1.1\t")
	f.Add("no tab")
	f.Fuzz(func(t *testing.T, output string) {
		name, version, err := cutTwo(output)
		if err == nil {
			require.True(t, strings.HasPrefix(output, name+"\t"+version))
			require.NotContains(t, name+version, "\t")
		}
	})
}

// Where a file is: its repository stays, and no name in an index leads to another host.
func FuzzFileURI(f *testing.F) {
	f.Add("./amd64/kubelet_1.37.2-1.1_amd64.deb")
	f.Add("//evil.example/x.deb")
	f.Add("pool/g++ 1:2?x#y.deb")
	f.Fuzz(func(t *testing.T, path string) {
		uri := upgrade.Candidate{Source: "https://mirror.example/v1.37/", Path: path}.URI()
		require.True(t, strings.HasPrefix(uri, "https://mirror.example/v1.37/"))
		require.NoError(t, checkURI(uri))
		require.False(t, strings.ContainsAny(uri, "?#"))
	})
}

// What dpkg and apt print of a failure fits a status, and is text.
func FuzzTransactionFailure(f *testing.F) {
	f.Add("dpkg: error processing archive /x.deb (--unpack):\n failed to write (No space left on device)\nE: Sub-process /usr/bin/dpkg returned an error code (1)\n")
	f.Add("debconf: delaying package configuration, since apt-utils is not installed\r\nW: x\n")
	f.Add(strings.Repeat("ä\n", 2000) + "\xff\x00")
	f.Fuzz(func(t *testing.T, stderr string) {
		failed := &command.Error{Argv: []string{"apt-get"}, ExitCode: 100, Tail: "tail"}
		err := transactionFailure(command.Result{Stderr: stderr}, failed)
		require.Error(t, err)
		require.LessOrEqual(t, len(err.Error()), maxWhy+100)
		require.Contains(t, err.Error(), "exit code 100")
		var blocked *upgrade.Blocked
		require.Equal(t, strings.Contains(stderr, "No space left on device") && errors.As(err, &blocked), errors.As(err, &blocked))
	})
}
