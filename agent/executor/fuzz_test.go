package executor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const planSeed = `{"assignmentID":"4-a","type":"Upgrade","disruption":"Drain","steps":[
{"kind":"Preflight","expect":{"kubelet":"v1.36.2"}},
{"kind":"SwitchSource","source":{"name":"kubernetes","file":"/etc/apt/sources.list.d/kubernetes.list","from":"https://m/v1.36/deb/","to":"https://m/v1.37/deb/"}},
{"kind":"InstallPackages","packages":[{"name":"kubelet","from":"1.36.2-1.1","to":"1.37.2-1.1","sha256":"0000000000000000000000000000000000000000000000000000000000000000","file":"kubelet.deb"}]},
{"kind":"RestartUnit","unit":"kubelet.service"},{"kind":"RunHook","hook":"smoke"},{"kind":"Reboot","reason":"kernel"},{"kind":"Verify"}]}`

// A file that is not wholly an operation, and of the one that was asked for, is refused.
func FuzzLoadOperation(f *testing.F) {
	f.Add([]byte(`{"id":"g1","plan":` + planSeed + `}`))
	f.Add([]byte(`{"id":"g1"} {"id":"g1"}`))
	f.Add([]byte(`{"id":"g2"}`))
	f.Add([]byte(`{"id":"g1","unknown":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := OperationPath(dir, "g1")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, data, 0o600))
		op, err := LoadOperation(dir, "g1")
		if err != nil {
			require.ErrorContains(t, err, path)
			return
		}
		require.Equal(t, "g1", op.ID)
		require.True(t, json.Valid(data), "the whole file was read")
	})
}

// A plan that is valid has nothing in it that is an option, a path or another program's
// syntax where a plain word belongs.
func FuzzValidate(f *testing.F) {
	f.Add([]byte(planSeed))
	f.Add([]byte(`{"steps":[{"kind":"RestartUnit","unit":"../x.service"},{"kind":"RunHook","hook":"-x"},{"kind":"WriteConfig","file":{"path":"/etc/shadow"}}]}`))
	f.Add([]byte(`{"steps":[{"kind":"KubeadmUpgrade","kubeadm":{"version":"v1.37.2","ignorePreflightErrors":["all"]}},{"kind":"StopSandboxes"},{"kind":"Reboot"},{"kind":"Reboot"}]}`))
	f.Add([]byte(`{"steps":[null,{"kind":"InstallPackages","packages":[{}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var plan upgrade.Plan
		if json.Unmarshal(data, &plan) != nil {
			return
		}
		hash, err := plan.ComputeHash()
		require.NoError(t, err)
		plan.Hash = hash
		if Validate(upgrade.Operation{ID: "g1", Plan: plan}) != nil {
			return
		}
		for _, s := range plan.Steps {
			words := []string{s.Unit, s.Hook}
			for _, c := range s.Packages {
				words = append(words, c.Name)
				if s.Kind == upgrade.StepInstallPackages && c.To != "" {
					words = append(words, c.To, c.File)
				}
			}
			used := s.Kind == upgrade.StepRestartUnit || s.Kind == upgrade.StepRunHook || s.Kind == upgrade.StepInstallPackages
			for _, word := range words {
				require.False(t, used && strings.ContainsAny(word, "/ \t\n\x00;|&$*?"), "%s: %q", s.Kind, word)
				require.False(t, used && strings.HasPrefix(word, "-"), "%s: %q", s.Kind, word)
			}
		}
		expectAll(plan)
	})
}

func expectAll(plan upgrade.Plan) {
	for i := range plan.Steps {
		expectAfter(plan, i)
	}
	removed(plan)
}

// The holds of the host's owner are told from any record that a journal may hold.
func FuzzHoldsOfARecord(f *testing.F) {
	f.Add([]byte(`{"operation":{"id":"g1","plan":{"steps":[{"kind":"UnholdPackages","packages":[{"name":"kubelet"}]},{"kind":"HoldPackages","packages":[{"name":"kubelet"}]}]}},"state":"Open","steps":[{"kind":"UnholdPackages","state":"Done"},{"kind":"HoldPackages","state":"Begun"}],"baseline":{"holds":["kubelet","kubeadm"]}}`))
	f.Add([]byte(`{"operation":{"id":"g1"},"state":"Failed","steps":[],"rollback":[{"kind":"HoldPackages","state":"Done","step":{"kind":"HoldPackages","packages":[{"name":"a"}]}}],"baseline":{}}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		r, err := journal.DecodeRecord("f", record)
		if err != nil {
			return
		}
		names := lost(r)
		if r.Baseline == nil {
			require.Empty(t, names)
			return
		}
		now := held(r)
		for _, name := range names {
			require.Contains(t, r.Baseline.Holds, name)
		}
		for _, name := range r.Baseline.Holds {
			require.True(t, now[name] || slices.Contains(names, name), "a hold of the owner is there, or is put back")
		}
	})
}
