package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSnapshotOnRecordIsTheOneThatTheExecutorTook(t *testing.T) {
	s := New(t.TempDir())
	assert.Nil(t, s.EtcdSnapshot(), "none was taken")
	path := filepath.Join(s.Dir(), "etcd", "latest.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"as it was written": {`{"path":"/var/lib/refit/etcd/snapshot-a.db","revision":7,"sha256":"5ca1e","size":1,"time":"2026-11-30T19:00:00Z"}`, true},
		"cut short":         {`{"path":"/var`, false},
		"of nothing":        {`{}`, false},
		"too long to tell":  {`{"path":"` + strings.Repeat("p", 300) + `"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
			got := s.EtcdSnapshot()
			require.Equal(t, tc.want, got != nil)
			if tc.want {
				assert.EqualValues(t, 7, got.Revision)
			}
		})
	}
}
