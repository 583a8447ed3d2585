package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// lay puts a file of the state there as a disk would give it back.
func lay(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

const operationSeed = `{"id":"g1","grant":{"id":"g1"},"plan":{"assignmentID":"4-a","type":"Upgrade","hash":"x","disruption":"Drain","steps":[{"kind":"InstallPackages","packages":[{"name":"kubelet","from":"1.36.2-1.1","to":"1.37.2-1.1","sha256":"00","file":"00.deb","size":1}]}]}}`

// Whatever a disk gives back: it reads, and writes as what it read, or the file is named.
func FuzzStateFiles(f *testing.F) {
	f.Add([]byte(operationSeed))
	f.Add([]byte(`{"generation":4,"plan":` + `{"assignmentID":"g1","steps":[]}` + `,"stageDuration":3}`))
	f.Add([]byte(`{"bootID":"b","operation":` + operationSeed + `}`))
	f.Add([]byte("{"))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		s := store.New(dir)
		for kind, again := range map[string]func() (bool, error){
			"plans": func() (bool, error) {
				v, err := s.Plan("g1")
				if err != nil || !journal.ValidID(v.Plan.AssignmentID) {
					return false, err
				}
				require.NoError(t, s.SavePlan(v))
				w, err := s.Plan(v.Plan.AssignmentID)
				require.NoError(t, err)
				requireSame(t, v.Plan, w.Plan)
				return true, nil
			},
			"accepting": func() (bool, error) {
				v, err := s.Intent("g1")
				if err != nil || !journal.ValidID(v.Operation.ID) {
					return false, err
				}
				require.NoError(t, s.SaveIntent(v))
				w, err := s.Intent(v.Operation.ID)
				require.NoError(t, err)
				requireSame(t, v.Operation.Plan, w.Operation.Plan)
				return true, nil
			},
			"operations": func() (bool, error) {
				v, err := s.Operation("g1")
				if err != nil || !journal.ValidID(v.ID) {
					return false, err
				}
				require.NoError(t, s.SaveOperation(v))
				w, err := s.Operation(v.ID)
				require.NoError(t, err)
				requireSame(t, v.Plan, w.Plan)
				return true, nil
			},
		} {
			path := lay(t, dir, kind+"/g1.json", data)
			if _, err := again(); err != nil {
				require.ErrorContains(t, err, path)
			}
		}
		_, _ = s.Unbegun()
		known, err := s.Known("g1")
		require.NoError(t, err)
		require.True(t, known, "an operation that cannot be read is not one that never was")
	})
}

// requireSame goes by the hash, which is what a grant is for.
func requireSame(t *testing.T, a, b upgrade.Plan) {
	t.Helper()
	x, err := a.ComputeHash()
	require.NoError(t, err)
	y, err := b.ComputeHash()
	require.NoError(t, err)
	require.Equal(t, x, y)
}

// Whoever this state is said to belong to, a host makes it its own or keeps it, and
// moves nothing out of its directory.
func FuzzOwner(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef\n"))
	f.Add([]byte("../../etc\n"))
	f.Add([]byte("/"))
	f.Add([]byte(".."))
	f.Add([]byte("a\x00b"))
	f.Add(make([]byte, 300))
	f.Fuzz(func(t *testing.T, owner []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "refit")
		lay(t, dir, "machine-id", owner)
		lay(t, dir, "operations/g1.json", []byte(operationSeed))
		s := store.New(dir)
		was, err := s.Owner()
		require.NoError(t, err)
		moved, err := s.Claim("fedcba9876543210fedcba9876543210")
		require.NoError(t, err)
		now, err := s.Owner()
		require.NoError(t, err)
		require.Equal(t, "fedcba9876543210fedcba9876543210", now)
		_, err = s.Operation("g1")
		if was == "" || was == now {
			require.NoError(t, err)
			require.Empty(t, moved)
		} else {
			require.ErrorIs(t, err, os.ErrNotExist, "another machine's operation is never gone on with")
			require.FileExists(t, filepath.Join(moved, "operations/g1.json"))
			require.Equal(t, dir, filepath.Dir(moved))
		}
		entries, err := os.ReadDir(outer)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
}
