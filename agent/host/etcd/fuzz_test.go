package etcd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func FuzzAlarmsAmongTheErrorsOfAStatus(f *testing.F) {
	for _, text := range []string{"memberID:10276657743932975437 alarm:NOSPACE ", "memberID:1  alarm:CORRUPT", "etcdserver: no leader", "", "memberID:99999999999999999999 alarm:NOSPACE"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, alarm := range alarmsIn([]string{text}) {
			assert.Regexp(t, `^[0-9a-f]*$`, alarm.Member)
			assert.Regexp(t, `^[A-Z]{1,32}$`, alarm.Alarm)
		}
	})
}

func FuzzTheClusterVersionInAnAnswer(f *testing.F) {
	for _, text := range []string{`{"etcdserver":"3.7.0","etcdcluster":"3.7.0"}`, `{"etcdcluster":"not_decided"}`, `{`, `[]`, ``} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if version := clusterVersionIn([]byte(text)); version != "" {
			_, ok := upgrade.ParseRelease(version)
			assert.True(t, ok)
		}
	})
}

func FuzzWhereAManifestSaysThatEtcdListens(f *testing.F) {
	for _, text := range []string{"https://127.0.0.1:2379,https://10.0.0.4:2379", "https://0.0.0.0:2379", "http://[::]:2379", "", ",", "://"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := New(t.TempDir()).member(func(name string) string {
			if name == "listen-client-urls" {
				return text
			}
			return ""
		})
		assert.NotEqual(t, err == nil, a == nil)
	})
}

func FuzzASnapshot(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 512+32))
	f.Fuzz(func(t *testing.T, content []byte) {
		e := New(t.TempDir())
		if len(content) > 1<<20 {
			return
		}
		path := "/snapshot.db"
		if err := os.WriteFile(filepath.Join(e.Root, path), content, 0o600); err != nil {
			t.Skip(err)
		}
		_, err := e.Verify(path)
		assert.Error(t, err, "what nobody has taken is no snapshot")
		_, _ = revision(filepath.Join(e.Root, path)) // without the digest before it, it must not fall over either
	})
}
