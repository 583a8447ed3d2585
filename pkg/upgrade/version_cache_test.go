package upgrade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatIsRememberedOfVersionsIsBoundedAndTrue(t *testing.T) {
	var p parsed
	calls := 0
	parse := func(text string) (Version, bool) { calls++; return parseKubernetes(text) }
	for range 3 {
		v, ok := p.of("v1.37.2", parse)
		assert.True(t, ok)
		assert.Equal(t, "v1.37.2", v.Raw())
		v, ok = p.of("bogus", parse)
		assert.False(t, ok)
		assert.Equal(t, "bogus", v.Raw(), "what is no version keeps its text, too")
	}
	assert.Equal(t, 2, calls)

	long := "v1.37.2+" + strings.Repeat("x", longestParsed)
	for range 2 {
		_, ok := p.of(long, parse)
		assert.True(t, ok)
	}
	assert.Equal(t, 4, calls, "long texts are not kept")

	for i := range 2 * mostParsed {
		v, ok := p.of(fmt.Sprintf("v1.30.%d", i), parse)
		assert.True(t, ok)
		assert.Equal(t, fmt.Sprintf("v1.30.%d", i), v.Raw())
	}
	kept := 0
	p.versions.Range(func(any, any) bool { kept++; return true })
	assert.LessOrEqual(t, kept, mostParsed)
}
