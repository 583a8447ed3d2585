package packagelog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What is shown of a log is one short line, without control characters and without the credentials of a URL.
func FuzzShown(f *testing.F) {
	f.Add("apt-get -o Acquire::http::Proxy=http://me:secret@proxy:3128/ install kubelet=1.30.5-1.1")
	f.Add("dnf --setopt=proxy=https://a:b@c@d/ upgrade\n\x1b[31m\u202e")
	f.Add("\xff\xfe" + strings.Repeat("ä", 500))
	f.Add("://@ ://x@ http://u:p@")
	f.Fuzz(func(t *testing.T, text string) {
		shown := Shown(text)
		require.True(t, utf8.ValidString(shown))
		require.LessOrEqual(t, utf8.RuneCountInString(shown), shownLimit+1)
		require.False(t, strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", shown)
		require.Equal(t, strings.TrimSpace(shown), shown)
		require.Equal(t, shown, Shown(shown), "again it says the same")
		if !strings.ContainsFunc(text, unicode.IsSpace) && !strings.Contains(text, "@") {
			require.NotContains(t, Shown("http://user:hunter2@"+text), "hunter2")
		}
	})
}

// The end of a log is what counts, however long it is.
func FuzzTail(f *testing.F) {
	f.Add([]byte("Start-Date: 2026-11-30  12:53:42\nCommandline: apt-get install zypper\n\n"), uint8(3))
	f.Add([]byte("x"), uint8(1))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		path := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		end, err := tail(path, int64(limit))
		require.NoError(t, err)
		require.Len(t, end, min(len(data), int(limit)))
		require.True(t, strings.HasSuffix(string(data), end))
	})
}
