package command

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// The end of an output goes into messages and into the API: it is bounded, it is the
// end, and it does not cut a character in two.
func FuzzTail(f *testing.F) {
	f.Add("first\nE: last\n", 8)
	f.Add("ÄÖÜ „quoted“ 日本語", 7)
	f.Add(strings.Repeat("x", 100)+"\n", 10)
	f.Add("a\n\n\n", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		got := Tail(text, limit)
		whole := strings.TrimSpace(text)
		if len(whole) <= limit {
			require.Equal(t, whole, got)
			return
		}
		end, cut := strings.CutPrefix(got, "… ")
		require.True(t, cut, "it says that it is not all")
		require.LessOrEqual(t, len(end), limit)
		require.True(t, strings.HasSuffix(whole, end))
		require.Equal(t, utf8.ValidString(whole), utf8.ValidString(whole) && utf8.ValidString(end))
	})
}

// However a program writes, what is kept is the end of it and does not grow.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("one\ntwo\nthree\n"), 4, 5)
	f.Add([]byte(strings.Repeat("0123456789", 50)), 7, 33)
	f.Fuzz(func(t *testing.T, data []byte, chunk, limit int) {
		if chunk < 1 || limit < 1 || limit > 1<<16 {
			return
		}
		kept := newTail(limit)
		for rest := data; len(rest) > 0; {
			n := min(chunk, len(rest))
			written, err := kept.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, written)
			require.LessOrEqual(t, len(kept.data), max(2*limit, limit+n))
			rest = rest[n:]
		}
		require.Equal(t, string(data[max(0, len(data)-limit):]), kept.String())
	})
}
