package apt

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestANameThatDpkgCouldNotHaveHidesNoOther(t *testing.T) {
	h := newHost(t)
	h.installed(deb{name: "kubelet", version: "1"}, deb{name: "telnet", version: "1"})
	for _, name := range []string{"x y", "NetworkManager", "tel*", "--version", ""} {
		assert.Equal(t, []string{"kubelet 1 installed"}, h.versions("kubelet", name), name)
		assert.Empty(t, h.versions(name), "and %q alone is no question for every package", name)
	}
}
