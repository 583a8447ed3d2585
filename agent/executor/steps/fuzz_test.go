package steps

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What programs print becomes a message that fits into the status of a Machine.
func FuzzTidy(f *testing.F) {
	f.Add("\x1b[31mE:\x1b[0m dpkg was interrupted\r\n\tsecond line\n")
	f.Add(strings.Repeat("ä", 2000))
	f.Add("\x1b[\x1b[0m1m\xff\x00")
	f.Fuzz(func(t *testing.T, text string) {
		got := Tidy(text)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, utf8.RuneCountInString(got), maxMessage+len(" … "))
		require.False(t, strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }))
		if utf8.RuneCountInString(got) <= maxMessage {
			require.Equal(t, got, Tidy(got), "what is tidy stays as it is")
		}
	})
}

// A plan writes into few directories, and a path has one spelling.
func FuzzManagedPath(f *testing.F) {
	for _, seed := range append([]string{kubeletConfig, kubeadmFlags, "/etc/shadow", ""}, managedDirs...) {
		f.Add(seed)
		f.Add(seed + "10-refit.conf")
		f.Add(seed + "../x")
	}
	f.Fuzz(func(t *testing.T, p string) {
		if !ManagedPath(p) {
			return
		}
		require.Equal(t, path.Clean(p), p)
		require.True(t, managedFiles[p] || slices.Contains(managedDirs, path.Dir(p)+"/"), "%q", p)
		require.NotEqual(t, "..", path.Base(p))
	})
}
