package checkout_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/checkout"
)

// A folder that the architecture names is there, or is marked as not being there yet.
func TestTheFoldersOfTheArchitectureAreThere(t *testing.T) {
	root, err := checkout.Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	_, layout, found := strings.Cut(string(page), "\n## 8. Layout\n")
	require.True(t, found)
	_, layout, _ = strings.Cut(layout, "```\n")
	layout, _, _ = strings.Cut(layout, "```")
	folder, seen := regexp.MustCompile(`(^|\s)([a-z0-9]+)/(†?)(\s|$)`), 0
	for line := range strings.Lines(layout) {
		top, rest, _ := strings.Cut(line, " ")
		if top != "deploy/" && top != "test/" && top != "coordinator/" {
			continue
		}
		for _, m := range folder.FindAllStringSubmatch(strings.ReplaceAll(rest, " ", "  "), -1) {
			seen++
			_, err := os.Stat(filepath.Join(root, top, m[2]))
			assert.Equal(t, m[3] == "", err == nil, "%s%s: marked with † or not, against what is there", top, m[2])
		}
	}
	assert.Greater(t, seen, 12)
}
