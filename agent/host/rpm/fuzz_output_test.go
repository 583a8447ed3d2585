package rpm

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// What rpm 4.18 says of itself before its answers.
const useAlien = "rpm: RPM should not be used directly install RPM packages, use Alien instead!\nrpm: However assuming you know what you are doing...\n"

func FuzzHeaders(f *testing.F) {
	f.Add("kubelet\tx86_64\t1.36.3-150500.1.1\nkubelet\tx86_64\t1.37.2-150500.1.1\ngpg-pubkey\t(none)\t9a296436-6a1b2c3d\n", "containerd.io", "1:1.7.2-3.1.el9")
	f.Add("kernel-core\tx86_64\t5.14.0-1\nkernel-core\tx86_64\t5.14.0-2\nglibc\ti686\t0:2.34-1\nglibc\tx86_64\t2.34-1\n", "a", "1")
	f.Add("package nosuch is not installed\n\t\t\n", "a", "0:1-1")
	f.Fuzz(func(t *testing.T, output, name, version string) {
		found := parseHeaders(output)
		require.LessOrEqual(t, len(found), 1+strings.Count(output, "\n"))
		for _, h := range found {
			require.NotContains(t, h.nevra(), "\t")
		}
		packages := states(found, []string{"kubelet"})
		for i, p := range packages {
			require.False(t, slices.ContainsFunc(packages[i+1:], func(o upgrade.InstalledPackage) bool { return o.Name == p.Name }), "each name once")
			require.NotEmpty(t, p.State)
			for _, h := range found {
				require.True(t, h.name != p.Name || upgrade.CompareRPM(h.version, p.Version) <= 0, "the newest is told")
			}
		}
		if strings.ContainsAny(name+version, "\t\n\r") {
			return
		}
		want := append(found, header{name, "noarch", strings.TrimPrefix(version, "0:")})
		require.Equal(t, want, parseHeaders(output+"\n"+name+"\tnoarch\t"+version+"\n"), "no line hides the next")
	})
}

func FuzzVerification(f *testing.F) {
	f.Add("..5......  c /etc/k2.conf\nmissing   c /etc/k3.conf\nmissing     /usr/bin/kubelet\npackage nosuch is not installed\n")
	f.Add("S.5....T.    /usr/bin/x\n.M...UG..  g /var/log/x\nmissing  d /usr/share/doc/x (Permission denied)\nUnsatisfied dependencies for a-1-1.noarch:\n")
	f.Add("..5......  c \n..5......  c /a (b) (c)\n..5")
	f.Fuzz(func(t *testing.T, output string) {
		for _, c := range changedConfigs(output) {
			require.True(t, strings.HasPrefix(c.Path, "/"))
			require.NotContains(t, c.Path, "\n")
			require.Contains(t, output, c.Path)
		}
		for line := range strings.Lines(output) {
			line = strings.TrimRight(line, "\n")
			require.False(t, changedFile(line) && changedConfig.MatchString(line), "%q is configuration or not", line)
		}
	})
}

// Whatever rpm prints around it, a package that nobody asked to remove is never overlooked.
func FuzzSimulation(f *testing.F) {
	f.Add(useAlien+"D: loading keyring from rpmdb\nD:  read h#       2 \nHeader V4 RSA/SHA512 Signature, key ID 2eb105ed: NOKEY\nHeader SHA1 digest: OK\nD:   Obsoletes: bystander < 2\t\terases bystander-1-1.noarch\nD: ========== --- bystander-1-1 noarch/linux 0x0\nerror: Failed dependencies:\n\tabsent >= 3 is needed by kubelet-1.37.2-1.noarch\nD: Exit status: 3\n", "bystander", "1-1")
	f.Add("D: ========== tsorting packages (order, #predecessors, #succesors, depth)\nD:     0    0    0    1   +kubelet-1.37.2-1.noarch\nD:     1    0    1    1   -kubelet-1.36.3-1.noarch\nD: installing binary packages\n", "python3-dnf", "4.14.0-3.el9")
	f.Add("D:  1 2 3 4  -\nD:  1 2 3 4 -a\nD:     0    0    0    1   -telnet-1-1.noarch\n", "x", "1-1")
	f.Fuzz(func(t *testing.T, output, name, version string) {
		changes := []upgrade.PackageChange{{Name: "kubelet", From: "1.36.3-1", To: "1.37.2-1"}, {Name: "telnet", From: "1-1"}}
		if err := erased(output, changes); err != nil {
			assertReason(t, err, "WouldRemove")
		}
		text := solverText(command.Result{Stdout: output})
		require.LessOrEqual(t, len(text), 1200+len("… "))
		_, plain, ok := strings.Cut(":"+version, ":")
		if !ok || !kind.Name.MatchString(name) || !kind.Version.MatchString(version) || !strings.Contains(plain, "-") || strings.Contains(plain, ":") || name == "kubelet" || name == "telnet" {
			return
		}
		err := erased(output+"\nD:     1    0    1    1   -"+name+"-"+plain+".x86_64\n", changes)
		assertReason(t, err, "WouldRemove")
	})
}

func FuzzObsoletes(f *testing.F) {
	f.Add("bystander\t< \t2\nother\t\t\n/usr/bin/x\t= \t1-1\n", "1-1")
	f.Add("a\t<=\t1:2-3\n(a or b)\t>\t\n\t\t\n", "1:2-3")
	f.Fuzz(func(t *testing.T, output, have string) {
		for _, o := range parseObsoletes(output) {
			require.NoError(t, kind.CheckNames([]string{o.name}))
			_ = within(have, o.relation, o.version)
			require.True(t, within(have, "", o.version), "what names no version means all")
		}
	})
}

const primarySeed = `<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="1">
<package type="rpm">
  <name>kubelet</name>
  <arch>noarch</arch>
  <version epoch="0" ver="1.37.2" rel="1"/>
  <checksum type="sha256" pkgid="YES">1086956e19abdded1c3fc467aa0e427220fcef79482af4c7e19109b7aa6448a5</checksum>
  <summary>test</summary>
  <size package="6109" installed="1" archive="256"/>
  <location href="noarch/kubelet-1.37.2-1.noarch.rpm"/>
  <format>
    <rpm:provides><rpm:entry name="kubelet" flags="EQ" epoch="0" ver="1.37.2" rel="1"/></rpm:provides>
    <rpm:requires><rpm:entry name="absent" flags="GE" epoch="0" ver="3"/><rpm:entry name="rpmlib(FileDigests)" flags="LE" epoch="0" ver="4.6.0" rel="1"/></rpm:requires>
    <file>/usr/bin/kubelet</file>
  </format>
</package>
</metadata>`

// An index is signed, but by whoever runs the mirror: nothing in it makes a size that
// could not be, a candidate without a digest, or one of another server.
func FuzzIndex(f *testing.F) {
	f.Add(primarySeed)
	f.Add(strings.ReplaceAll(primarySeed, "6109", "-6109"))
	f.Add(strings.ReplaceAll(primarySeed, "noarch/kubelet", "http://evil.example/../../x?y#z"))
	f.Add(strings.ReplaceAll(primarySeed, `href=`, `xml:base="http://evil.example/" href=`))
	f.Add("<package><name>a</name><package><name>b</name></package></package>")
	f.Add(`<!DOCTYPE x [<!ENTITY a "b">]><package><name>&a;</name></package>`)
	f.Fuzz(func(t *testing.T, text string) {
		const base = "https://mirror.example/v1.37/rpm/"
		err := packagesIn(strings.NewReader(text), func(p pkg) {
			c, ok := p.candidate(base)
			if !ok {
				return
			}
			require.Regexp(t, packagefile.Digest, c.SHA256)
			require.NotEmpty(t, c.Path)
			require.GreaterOrEqual(t, c.Size, int64(0))
			require.GreaterOrEqual(t, c.InstalledSize, int64(0))
			require.True(t, strings.HasPrefix(c.URI(), base), "%q", c.URI())
			require.NoError(t, checkURI(c.URI()))
		})
		_ = err // what is no XML is none
		path := filepath.Join(t.TempDir(), "primary.xml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		names, err := namesIn(path, []string{"kubelet", "a"})
		require.NoError(t, err)
		require.LessOrEqual(t, len(names), 2)
	})
}

func FuzzRepomd(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0" encoding="UTF-8"?>
<repomd xmlns="http://linux.duke.edu/metadata/repo" xmlns:rpm="http://linux.duke.edu/metadata/rpm">
  <revision>1796043273</revision>
  <data type="primary">
    <checksum type="sha256">5616111aa12e788c053ab5a32690adca86ad6ca131438729f06822e11bd381ec</checksum>
    <location href="repodata/5616111aa12e788c053ab5a32690adca86ad6ca131438729f06822e11bd381ec-primary.xml.gz"/>
    <size>713</size>
  </data>
</repomd>`))
	f.Add([]byte(`<repomd><data type="primary"><checksum type="sha">1</checksum></data></repomd>`))
	f.Add([]byte(`<repomd><data type="primary"><checksum type="sha256">5616111aa12e788c053ab5a32690adca86ad6ca131438729f06822e11bd381ec</checksum><location href="../x"/><size>-1</size></data></repomd>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m repomd
		if xml.Unmarshal(data, &m) != nil {
			return
		}
		href, sha256, size, err := m.index("primary")
		if err != nil {
			require.Empty(t, href)
			return
		}
		require.Regexp(t, packagefile.Digest, sha256)
		require.NotContains(t, href, "..")
		require.GreaterOrEqual(t, size, int64(0))
		require.NoError(t, checkURI("https://mirror.example/v1.37/rpm/"+href), "%q", href)
		require.Equal(t, filepath.Base(fileOfIndex(sha256, href)), fileOfIndex(sha256, href))
	})
}

func FuzzMirrors(f *testing.F) {
	f.Add("# repo = baseos\nhttps://mirror.example/9/BaseOS/$basearch/os/\r\nhttp://b.example/\nrsync://c.example/\n\nftp://d\n")
	f.Add(`<metalink><files><file name="repomd.xml"><resources><url protocol="https" type="https" location="DE" preference="100">https://a.example/9/os/repodata/repomd.xml</url><url>rsync://b/repodata/repomd.xml</url></resources></file></files></metalink>`)
	f.Fuzz(func(t *testing.T, text string) {
		found := mirrors(text)
		require.LessOrEqual(t, len(found), maxMirrors)
		for _, uri := range found {
			require.NoError(t, checkURI(withoutVariables(uri)), "%q", uri)
		}
	})
}

func FuzzRelease(f *testing.F) {
	f.Add("rocky-release\t9.4-1.7.el9\nsystem-release(releasever)\t9\nsystem-release\t9.4-1.7.el9\n")
	f.Add("no package provides system-release\n")
	f.Fuzz(func(t *testing.T, output string) {
		require.False(t, strings.ContainsAny(providedRelease(output), "-\n"))
		require.Equal(t, "9", providedRelease("system-release\t8-1\n"+strings.ReplaceAll(output, "releasever", "")+"\nsystem-release(releasever)\t9\n"))
	})
}

// What dnf's logs say is told to people: on one line, short, and only of what is installed.
func FuzzHistory(f *testing.F) {
	const commands = "2026-11-30T10:23:57+0000 INFO --- logging initialized ---\n2026-11-30T10:23:57+0000 DDEBUG Command: dnf upgrade --setopt=proxy=http://me:secret@proxy/ -y \n"
	f.Add("2026-11-30T10:23:58+0000 SUBDEBUG Upgrade: kubelet-1.37.2-1.noarch\n2026-11-30T10:23:58+0000 SUBDEBUG Upgraded: kubelet-1.36.3-1.noarch\n", commands)
	f.Add("x y Installed: containerd.io-1.7.2-1.x86_64\n\x1b[31m x Installed: kubelet-1.37.2-1.noarch\n", commands)
	f.Fuzz(func(t *testing.T, changes, commands string) {
		by := changedBy(changes, commands, map[string]string{"kubelet": "1.37.2-1", "containerd.io": "1:1.7.2-1"})
		for name, text := range by {
			require.Contains(t, []string{"kubelet", "containerd.io"}, name)
			require.LessOrEqual(t, len([]rune(text)), 300)
			require.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", text)
		}
		added := "\n2099-01-01T00:00:00+0000 SUBDEBUG Upgrade: kubelet-1.37.2-1.noarch\n"
		require.Contains(t, changedBy(changes+added, commands, map[string]string{"kubelet": "1.37.2-1"})["kubelet"], "2099-01-01", "no line hides the next")
	})
}

// No signature holds that was not made by one of the keys, whatever the bytes.
func FuzzSignature(f *testing.F) {
	key, err := openpgp.NewEntity("refit-test", "", "", nil)
	require.NoError(f, err)
	var ring, signature bytes.Buffer
	writer, err := armor.Encode(&ring, openpgp.PublicKeyType, nil)
	require.NoError(f, err)
	require.NoError(f, key.Serialize(writer))
	require.NoError(f, writer.Close())
	require.NoError(f, openpgp.ArmoredDetachSign(&signature, key, strings.NewReader("data"), nil))
	require.NoError(f, signed("x", []byte("data"), signature.Bytes(), [][]byte{ring.Bytes()}))
	f.Add(ring.Bytes(), signature.Bytes(), []byte("other data"))
	f.Add(ring.Bytes()[:200], signature.Bytes()[:90], []byte("data"))
	f.Add([]byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n-----END PGP PUBLIC KEY BLOCK-----\n"), []byte{0x88, 0x5e}, []byte{})
	f.Fuzz(func(t *testing.T, ring, signature, data []byte) {
		if bytes.Equal(data, []byte("data")) {
			return // the one text that has a signature
		}
		assertReason(t, signed("x", data, signature, [][]byte{ring, {}}), "RepoSignature")
	})
}

// What libzypp's log says is told to people: on one line, short, and only of what is installed.
func FuzzZyppHistory(f *testing.F) {
	f.Add("# 2026-11-30 13:19:53 kubelet-2-1.noarch.rpm installed ok\n# Additional rpm output:\n# rpm: RPM should not be used directly install RPM packages, use Alien instead!\n#\n" +
		"2026-11-30 13:19:53|command|root@vm|'/usr/local/bin/zypper' '--non-interactive' 'update' 'kubelet'|\n2026-11-30 13:19:53|install|kubelet|1.37.2-1|noarch||kubernetes|aa|\n")
	f.Add("\x1b[31m|install|containerd.io|0:1|||\n|||\ncommand|command||'\n2026|remove |kubelet|1.37.2-1|noarch|root@vm|\n")
	f.Fuzz(func(t *testing.T, log string) {
		for name, text := range zyppChangedBy(log, map[string]string{"kubelet": "1.37.2-1", "containerd.io": "1"}) {
			require.Contains(t, []string{"kubelet", "containerd.io"}, name)
			require.LessOrEqual(t, len([]rune(text)), 300)
			require.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", text)
		}
		added := "\n2099-01-01 00:00:00|install|kubelet|1.37.2-1|noarch|root@vm|kubernetes|aa|\n"
		require.Contains(t, zyppChangedBy(log+added, map[string]string{"kubelet": "1.37.2-1"})["kubelet"], "2099-01-01", "no line hides the next")
	})
}
