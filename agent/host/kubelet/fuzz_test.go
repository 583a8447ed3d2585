package kubelet

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
)

// printer is a program that prints anything.
type printer struct{ output string }

func (p printer) Run(context.Context, command.Command) (command.Result, error) {
	return command.Result{Stdout: p.output}, nil
}

func FuzzProgramVersion(f *testing.F) {
	f.Add("Kubernetes v1.37.2\n")
	f.Add("Kubernetes \nmore")
	f.Add("flag provided but not defined: -version\n" + strings.Repeat("usage\n", 100))
	f.Fuzz(func(t *testing.T, output string) {
		version, err := ProgramVersion(t.Context(), printer{output}, "/usr/bin/kubelet")
		if err != nil {
			require.ErrorContains(t, err, "/usr/bin/kubelet")
			require.Less(t, len(err.Error()), 2000, "not the whole output")
			return
		}
		require.NotEmpty(t, version)
		require.NotContains(t, version, "\n", "a version is one word")
		require.Contains(t, output, version)
	})
}

func FuzzHealthAddress(f *testing.F) {
	f.Add([]byte("healthzBindAddress: 127.0.0.1\nhealthzPort: 10248\n"))
	f.Add([]byte("healthzBindAddress: \"::\"\nhealthzPort: 0\n"))
	f.Add([]byte("healthzPort: -1\n"))
	f.Add([]byte("healthzPort: \"10248\"\n"))
	f.Fuzz(func(t *testing.T, config []byte) {
		k := &Kubelet{Root: t.TempDir(), Units: units{}}
		path := filepath.Join(k.Root, ConfigPath)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, config, 0o600))
		address, err := k.healthAddress(t.Context())
		if err != nil {
			require.ErrorContains(t, err, ConfigPath)
			return
		}
		host, port, err := net.SplitHostPort(address)
		require.NoError(t, err, "%q", address)
		require.NotEmpty(t, host)
		number, err := strconv.ParseUint(port, 10, 16)
		require.NoError(t, err, "a port that no server could have is an error that names the file")
		require.NotZero(t, number)
	})
}
