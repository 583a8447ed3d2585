package etcdunit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/systemd"
)

// process is a /proc with one process in it.
func process(t *testing.T, line, environ []string) string {
	t.Helper()
	proc := t.TempDir()
	dir := filepath.Join(proc, "42")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, words := range map[string][]string{"cmdline": line, "environ": environ} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(words, "\x00")+"\x00"), 0o600))
	}
	return proc
}

func TestWhatAMemberWasStartedWithIsReadAsEtcdReadsIt(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc/etcd"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/etcd/etcd.yaml"), []byte("name: e1\nlisten-client-urls: https://10.0.0.3:2379\nclient-transport-security:\n  cert-file: /pki/server.crt\n  key-file: /pki/server.key\n  trusted-ca-file: /pki/ca.crt\n  client-cert-auth: true\npeer-transport-security:\n  cert-file: /pki/peer.crt\n"), 0o600))
	for name, tc := range map[string]struct {
		line, environ []string
		want          map[string]string
	}{
		"flags": {
			line: []string{"/usr/bin/etcd", "--listen-client-urls=https://10.0.0.1:2379", "-cert-file", "/server.crt", "--client-cert-auth", "--key-file", "/server.key"},
			want: map[string]string{"listen-client-urls": "https://10.0.0.1:2379", "cert-file": "/server.crt", "client-cert-auth": "", "key-file": "/server.key"},
		},
		"its environment, as Debian's unit has it": {
			line: []string{"/usr/bin/etcd"}, environ: []string{"PATH=/bin", "ETCD_LISTEN_CLIENT_URLS=https://10.0.0.2:2379", "ETCD_TRUSTED_CA_FILE=/ca.crt"},
			want: map[string]string{"listen-client-urls": "https://10.0.0.2:2379", "trusted-ca-file": "/ca.crt"},
		},
		"a flag before its environment": {
			line: []string{"/usr/bin/etcd", "--name=flag"}, environ: []string{"ETCD_NAME=environment"},
			want: map[string]string{"name": "flag"},
		},
		"a file, and neither flags nor environment beside it": {
			line: []string{"/usr/bin/etcd", "--config-file", "/etc/etcd/etcd.yaml", "--cert-file=/other.crt"}, environ: []string{"ETCD_NAME=environment"},
			want: map[string]string{"name": "e1", "listen-client-urls": "https://10.0.0.3:2379", "cert-file": "/pki/server.crt", "key-file": "/pki/server.key", "trusted-ca-file": "/pki/ca.crt"},
		},
		"a file that the environment names": {
			line: []string{"/usr/bin/etcd"}, environ: []string{"ETCD_CONFIG_FILE=/etc/etcd/etcd.yaml"},
			want: map[string]string{"name": "e1"},
		},
		"nothing": {line: []string{"/usr/bin/etcd"}, want: map[string]string{"listen-client-urls": listensByDefault, "cert-file": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			flag, err := OfProcess(process(t, tc.line, tc.environ), root, 42)
			require.NoError(t, err)
			for name, want := range tc.want {
				assert.Equal(t, want, flag(name), name)
			}
		})
	}
}

func TestAFileThatCannotBeReadIsNoAnswer(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "bad"), []byte("a: b: c"), 0o600))
	for file, says := range map[string]string{"/missing": "no such file", "/bad": "it is no YAML"} {
		_, err := OfProcess(process(t, []string{"etcd", "--config-file=" + file}, nil), root, 42)
		require.ErrorContains(t, err, says)
	}
	_, err := OfProcess(t.TempDir(), root, 42)
	require.ErrorContains(t, err, "reading the flags of etcd")
}

type units struct {
	status systemd.Status
	err    error
}

func (u units) Status(context.Context, string) (systemd.Status, error) { return u.status, u.err }

func TestAUnitThatIsDownIsNoHostWithoutEtcd(t *testing.T) {
	for name, tc := range map[string]struct {
		units units
		says  string
	}{
		"there is none":                     {units{status: systemd.Status{LoadState: "not-found"}}, ""},
		"it is left over":                   {units{status: systemd.Status{LoadState: "loaded", ActiveState: "inactive", FileState: "disabled"}}, ""},
		"it is down and a boot starts it":   {units{status: systemd.Status{LoadState: "loaded", ActiveState: "failed", FileState: "enabled"}}, "does not run (failed)"},
		"systemd does not say":              {units{err: errors.New("no bus")}, "no bus"},
		"its process is gone as one looks":  {units{status: systemd.Status{LoadState: "loaded", ActiveState: "active", MainPID: 1<<22 + 1}}, "reading the flags"},
		"it is starting and has no process": {units{status: systemd.Status{LoadState: "loaded", ActiveState: "activating", FileState: "enabled"}}, "does not run (activating)"},
	} {
		t.Run(name, func(t *testing.T) {
			flag, err := Finder(tc.units, t.TempDir())(t.Context())
			assert.Nil(t, flag)
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func FuzzFlagsOfEtcd(f *testing.F) {
	f.Add("etcd\x00--name=a\x00-b\x00c\x00--d\x00\x00-\x00--")
	f.Fuzz(func(t *testing.T, line string) {
		for name := range flagsIn(nulls([]byte(line))) {
			assert.NotContains(t, name, "=")
		}
	})
}

func FuzzAConfigurationFileOfEtcd(f *testing.F) {
	f.Add([]byte("name: a\nclient-transport-security: {cert-file: b, client-cert-auth: true}\n"))
	f.Add([]byte("client-transport-security: 3"))
	f.Add([]byte("- a"))
	f.Fuzz(func(t *testing.T, content []byte) {
		out, err := fileIn(content)
		assert.NotEqual(t, err == nil, out == nil)
	})
}
