package rpm

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func addRepoFiles(f *testing.F) {
	for _, seed := range []string{
		repoText,
		"[a]\r\nbaseurl=http://a/\r\ngpgkey=file:///etc/pki/rpm-gpg/a\r\n",
		"[a]\nbaseurl=http://a/,http://b/\n http://c/\n[a]\nmetalink = http://a\nbaseurl\n  http://a\n",
		"baseurl=http://a/\n[b]\nmirrorlist=http://a\n#baseurl=http://a/\n; x\nBASEURL=http://a/\ngpgkey=http://a/\n\tfile:///b\n",
		"[repo-oss]\nname=Main\nenabled=1\nautorefresh=1\nbaseurl=http://download.opensuse.org/distribution/leap/$releasever/repo/oss/\npath=/\ntype=rpm-md\nkeeppackages=0\n",
		"[a]\nbaseurl=http://a/\u00a0\x0bhttp://b/\n", "[]\n[\n]=\n", "[a\nbaseurl=http://a/\n[b]baseurl=http://a/\n",
	} {
		f.Add(seed, "http://a/")
		f.Add(seed, "http://a")
		f.Add(seed, "https://pkgs.example.com/v1.36/rpm/")
	}
}

func FuzzRepoFile(f *testing.F) {
	addRepoFiles(f)
	f.Fuzz(func(t *testing.T, content, _ string) {
		lines := strings.Split(content, "\n")
		at := 0
		for _, s := range parseINI(content) {
			require.Greater(t, s.line, at, "sections come in their order")
			at = s.line
			require.True(t, strings.HasPrefix(lines[s.line-1], "["+s.id+"]"))
			for key, line := range s.lines {
				require.True(t, line > s.line && line <= len(lines))
				name, _, _ := strings.Cut(lines[line-1], "=")
				require.Equal(t, key, strings.ToLower(strings.TrimSpace(name)))
			}
			uris, _ := s.uris()
			facts := repo{section: s, file: "/etc/yum.repos.d/x.repo"}.facts()
			for _, word := range slices.Concat(uris, s.list("gpgkey"), s.excludes(), strings.Fields(facts.SignedBy)) {
				require.NotEmpty(t, word)
				require.False(t, strings.ContainsFunc(word, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), "%q", word)
			}
		}
	})
}

// placesIn are the values of a file that name a place, section by section.
func placesIn(content string) [][]string {
	var all [][]string
	for _, s := range parseINI(content) {
		for _, key := range []string{"baseurl", "metalink", "mirrorlist"} {
			all = append(all, s.list(key))
		}
	}
	return all
}

// Whoever reads a repository file and whoever switches a URI in it agree about where its URIs are.
func FuzzSwitch(f *testing.F) {
	addRepoFiles(f)
	f.Fuzz(func(t *testing.T, content, from string) {
		const to = "https://refit.example/v1.99/"
		if checkURI(from) != nil || strings.Contains(from, ",") || sameURI(from, to) || strings.Contains(content, "refit.example") {
			return // no plan has such a change
		}
		want := placesIn(content)
		named := false
		for _, words := range want {
			for i := range words {
				if sameURI(words[i], from) {
					words[i], named = to, true
				}
			}
		}
		out, replaced, present := replaceURI(content, from, to)
		require.False(t, present)
		if named {
			require.True(t, replaced, "%q is a place in %q", from, content)
		}
		require.Equal(t, want, placesIn(out))
		require.Equal(t, strings.Count(content, "\n"), strings.Count(out, "\n"))
		again, replaced, _ := replaceURI(out, from, to)
		require.False(t, replaced)
		require.Equal(t, out, again)
	})
}

// The keys of one repository become those of the change, and nothing else reads otherwise than before.
func FuzzRestate(f *testing.F) {
	addRepoFiles(f)
	f.Fuzz(func(t *testing.T, content, uri string) {
		const key = "file:///etc/pki/rpm-gpg/refit"
		for _, keys := range []string{key, "", "https://a/k /b"} {
			change := upgrade.SourceChange{Name: "x", To: uri, SignedBy: keys, Was: &upgrade.SourceWords{}}
			out, err := New("/nowhere").restate(content, change)
			if err != nil {
				assertReason(t, err, "SourceMissing")
				continue
			}
			before, after := parseINI(content), parseINI(out)
			require.Len(t, after, len(before))
			for i, s := range after {
				uris, _ := before[i].uris()
				want := before[i].list("gpgkey")
				if slices.ContainsFunc(uris, func(u string) bool { return sameURI(u, uri) }) {
					want = strings.Fields(keys)
				}
				require.Equal(t, strings.Join(want, " "), strings.Join(s.list("gpgkey"), " "))
				delete(before[i].values, "gpgkey")
				delete(s.values, "gpgkey")
				require.Equal(t, before[i].values, s.values)
				require.Equal(t, before[i].id, s.id)
			}
			again, err := New("/nowhere").restate(out, change)
			require.NoError(t, err)
			require.Equal(t, out, again)
		}
	})
}

func FuzzSourcePath(f *testing.F) {
	for _, seed := range []string{"/etc/yum.repos.d/k.repo", "/etc/yum.repos.d/../passwd", "etc/yum.repos.d/x.repo", "/etc/yum.repos.d/.repo", "/etc/yum.repos.d/x/y.repo"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		path, err := New("/root").sourcePath(file)
		if err != nil {
			assertReason(t, err, "SourceInvalid")
			return
		}
		require.Equal(t, "/root"+file, path)
		require.Equal(t, reposDir, filepath.Dir(file))
	})
}

// What goes through becomes an operand of rpm and a file name: it is one plain word.
func FuzzCheckChange(f *testing.F) {
	digest := strings.Repeat("0", 64)
	f.Add("kubelet", "1.36.2-150500.1.1", "1:1.37.2~rc1-1", digest+".rpm", digest)
	f.Add("kubelet-", "", "1", "../x", digest)
	f.Add("-e", "1", "", "", "")
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

func addHeaders(f *testing.F, seeds ...string) {
	for _, seed := range seeds {
		f.Add(seed, "kubelet", "1:1.37.2~rc1", "1")
		f.Add(seed, "python3-dnf-1-2", "1.37.2", "150500.1.1")
	}
}

// The locks of others stay, ours come and go, whatever the file looks like.
func fuzzLocks(t *testing.T, l lockList, content string, h header) {
	before := l.names(content)
	locked := l.with(content, []header{h})
	require.Contains(t, l.names(locked), h.name)
	require.Equal(t, append(slices.Clone(before), h.name), l.names(locked), "it is put after the others")
	free := l.without(locked, []string{h.name})
	others := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return name == h.name })
	require.Equal(t, strings.Join(others, "\n"), strings.Join(l.names(free), "\n"))
	require.Equal(t, free, l.without(free, []string{h.name}))
	for _, name := range before {
		require.NotEmpty(t, name)
	}
}

func FuzzLockList(f *testing.F) {
	addHeaders(f, "# Added lock on Mon Nov 30 12:54:34 2026\nkubelet-0:1.36.3-1.*\n\n!bash-0:5-1.*\nkernel-*", "0:kubelet-1.30.4-1.*\r\n", " a-1 \n-\n--\n*")
	f.Fuzz(func(t *testing.T, content, name, version, release string) {
		if v := version + "-" + release; kind.Name.MatchString(name) && kind.Version.MatchString(v) {
			fuzzLocks(t, listLocks{}, content, header{name, "x86_64", v})
		}
	})
}

func FuzzLockTable(f *testing.F) {
	addHeaders(f, "version = \"1.0\"\n\n[[packages]]\nname = \"bash\"\ncomment = \"mine\"\n[[packages.conditions]]\nkey = \"evr\"\ncomparator = \"<\"\nvalue = \"5.2\"\n",
		"[[packages]]\n[[packages]]\nname='a'\n", "[[packages]] # x\r\n name = \"a\"\r\n[[packages.conditions]]\nname = \"b\"")
	f.Fuzz(func(t *testing.T, content, name, version, release string) {
		if v := version + "-" + release; kind.Name.MatchString(name) && kind.Version.MatchString(v) {
			fuzzLocks(t, tomlLocks{}, content, header{name, "x86_64", v})
		}
	})
}

// A record that cannot be read stops everything; one that can is taken as it is.
func FuzzTransaction(f *testing.F) {
	f.Add([]byte(`{"dir":"/var/lib/refit/stage","changes":[{"name":"kubelet","from":"1-1","to":"2-1","file":"x.rpm","sha256":"0"}],"config":[{"path":"/etc/k.conf","copy":"0"}]}` + "\n"))
	f.Add([]byte(`{"changes":null}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := bareAt(t)
		h.write("var/lib/refit/rpm/transaction.json", string(data))
		h.write("var/lib/refit/rpm/origins.json", string(data))
		_ = h.origins()
		found, err := h.unfinished()
		if err != nil {
			assertReason(t, err, upgrade.ReasonPackageDBBroken)
			require.Empty(t, h.interrupted())
			return
		}
		require.NotNil(t, found)
		require.Len(t, h.interrupted(), len(found.Changes))
	})
}

func bareAt(t *testing.T) *host { return &host{RPM: New(t.TempDir()), t: t} }

func FuzzZyppLocks(f *testing.F) {
	addHeaders(f, "\ntype: package\nversion: > 3\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: bar\n\n\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: foo*\n\n",
		"# mine\nsolvable_name: kubelet\nsolvable_name: a\nmatch_type: exact\n \nkind: patch\nsolvable_name: kubelet", "match_type: regex\r\nsolvable_name: (\r\n\r\nsolvable_name\n:\nquery_string: x\n")
	f.Fuzz(func(t *testing.T, content, name, version, release string) {
		v := version + "-" + release
		if !kind.Name.MatchString(name) || !kind.Version.MatchString(v) {
			return
		}
		h := header{name, "x86_64", v}
		if matches(zyppLocks{}.names(content), name) {
			require.Equal(t, content, zyppLocks{}.with(content, []header{h}), "it is held already")
			return
		}
		fuzzLocks(t, zyppLocks{}, content, h)
	})
}

// What a URI says of its server never goes to the server when it is for libzypp, and always when it is not.
func FuzzZyppReach(f *testing.F) {
	f.Add("https://updates.example.com/SUSE/Updates/SLE/15-SP5/x86_64/update?credentials=SCC&kFz0~token", "username=SCC_me\npassword=secret\n")
	f.Add("http://m.example/?proxy=p&proxyport=3128&ssl_verify=no", "# username=x\nusername = \"y\"\npassword")
	f.Add("https://m.example/$releasever/?credentials=/../../etc/shadow&&=", "=\n==\n")
	f.Add("http://m.example/?credentials=%zz&x", "")
	f.Fuzz(func(t *testing.T, uri, credentials string) {
		if checkURI(withoutVariables(uri)) != nil {
			return
		}
		h := bareAt(t)
		h.dialect = zypper()
		h.write("etc/zypp/credentials.d/SCC", credentials)
		h.write("etc/sysconfig/proxy", credentials)
		a, err := h.access(uri, nil)
		if err != nil {
			return
		}
		for _, word := range strings.Split(a.query, "&") {
			key, _, _ := strings.Cut(word, "=")
			require.NotContains(t, zyppOptions, key)
		}
		_, query, _ := strings.Cut(uri, "?")
		for _, word := range strings.Split(query, "&") {
			if key, _, _ := strings.Cut(word, "="); !slices.Contains(zyppOptions, key) {
				require.Contains(t, strings.Split(a.query, "&"), word)
			}
		}
		require.NotContains(t, (*repo)(nil).place(uri), "?")
	})
}
