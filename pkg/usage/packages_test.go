package usage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/usage"
)

func TestAPackageIsNamedAsThePackageManagerDoes(t *testing.T) {
	require.NoError(t, usage.PackageNames("package", []string{"openssl", "libstdc++6", "NetworkManager", "python3.11", "p7zip-full"}))
	require.NoError(t, usage.PackageNames("package", nil))
	for _, name := range []string{"", "x y", "-x", "x-", "a*", "x=1", "../x", "x\ny", "x,y", strings.Repeat("x", 129)} {
		err := usage.PackageNames("package", []string{"openssl", name})
		require.ErrorContains(t, err, "--package", name)
		assert.True(t, usage.Is(err), name)
	}
}
