package packagefile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// The memory of what repositories offer is a hint: damaged, it is begun anew.
func FuzzOffers(f *testing.F) {
	f.Add([]byte(`[{"uri":"https://pkgs.k8s.io/core:/stable:/v1.29/deb","packages":["kubeadm","kubelet"]}]`))
	f.Add([]byte(`{"uri":1}`))
	f.Add([]byte(`[null,{}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := Offers(filepath.Join(t.TempDir(), "offers.json"))
		require.NoError(t, os.WriteFile(string(o), data, 0o600))
		_ = o.Remembered(t.Context())
		require.NoError(t, o.Remember([]upgrade.CandidateSource{{URI: "http://m/"}}, []upgrade.Candidate{{Name: "kubelet", Source: "http://m"}}))
		offers, err := o.read()
		require.NoError(t, err)
		assert.LessOrEqual(t, len(offers), MaxRemembered)
		assert.Equal(t, "http://m", offers[0].URI)
		assert.True(t, slices.Contains(offers[0].Packages, "kubelet"))
	})
}
