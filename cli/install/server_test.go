package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAPIServerIsNewEnoughForWhatIsInstalled(t *testing.T) {
	for version, tc := range map[string]struct{ systemd, pods string }{
		"v1.29.14":            {"needs v1.30", "needs v1.30"},
		"v1.29.9-eks-a5ec690": {"needs v1.30", "needs v1.30"},
		"v1.9.3":              {"needs v1.30", "needs v1.30"},
		"v1.30.0":             {"", "need v1.31"},
		"v1.30.4+k3s1":        {"", "need v1.31"},
		"v1.31.0":             {"", ""},
		"v1.31.0-alpha.1":     {"", ""}, // some build before: no reason to be stricter than the number
		"v1.37.2-gke.100":     {"", ""},
		"v2.0.0":              {"", ""},
		"unknown":             {"", ""},
		"":                    {"", ""},
	} {
		for pods, says := range map[bool]string{false: tc.systemd, true: tc.pods} {
			err := CheckServer(version, pods)
			if says == "" {
				require.NoError(t, err, version)
				continue
			}
			require.ErrorContains(t, err, says, version)
			assert.ErrorContains(t, err, version)
		}
	}
}
