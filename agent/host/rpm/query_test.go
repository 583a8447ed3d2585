package rpm

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestANameThatRpmCouldNotHaveHidesNoOther(t *testing.T) {
	h := newHost(t)
	h.installs(kubelet("1.36.3-1"))
	for _, name := range []string{"x y", "kube*", "--version", ""} {
		assert.Equal(t, h.versions("kubelet"), h.versions("kubelet", name), name)
		assert.Len(t, h.versions("kubelet", name), 1, name)
		assert.Empty(t, h.versions(name), "and %q alone is no question for every package", name)
	}
}
