package upgrade

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDebianVersionsThatWentWrongForPeopleAreOrdered(t *testing.T) {
	for _, pair := range [][2]string{ // the first is newer
		{"1.36.2-2.1", "1.36.2-1.1"},
		{"1.28.2-1.1", "1.28.2-00"},
		{"5:19.03.9~3-0~ubuntu-bionic", "20.10.0"},
		{"23.0.0-0", "23.0.0~rc.2-0"},
		{"1.6.20-1", "1.6.20~ds1-1"},
		{"0.10.0-rc2", "0.10.0"},
		{"1.30.10-1.1", "1.30.9-1.1"},
	} {
		assert.Equal(t, 1, CompareDeb(pair[0], pair[1]), "%s > %s", pair[0], pair[1])
		assert.Equal(t, -1, CompareDeb(pair[1], pair[0]), "%s < %s", pair[1], pair[0])
	}
	assert.Equal(t, 0, CompareDeb("0:1.0-0", "1.0"))
	assert.NotEqual(t, 0, CompareDeb("0.7.5-2", "0.7.5"), "a revision more is another version")
}

// generatedPairs are version texts that are near each other, since far ones are easy.
func generatedPairs(seed uint64, n int, marks string) [][2]string {
	r := rand.New(rand.NewPCG(seed, 1))
	pairs := make([][2]string, 0, n)
	for range n {
		a := generatedVersion(r, marks)
		b := generatedVersion(r, marks)
		if r.IntN(2) == 0 {
			b = mutated(r, a, marks)
		}
		pairs = append(pairs, [2]string{a, b})
	}
	return pairs
}

func generatedVersion(r *rand.Rand, marks string) string {
	var b strings.Builder
	if r.IntN(4) == 0 {
		fmt.Fprintf(&b, "%d:", r.IntN(3))
	}
	fmt.Fprintf(&b, "%d.%d", r.IntN(3), r.IntN(12))
	for range r.IntN(5) {
		b.WriteString(piece(r, marks))
	}
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "-%d", r.IntN(3))
		for range r.IntN(3) {
			b.WriteString(piece(r, marks))
		}
	}
	return b.String()
}

func piece(r *rand.Rand, marks string) string {
	words := []string{"rc", "ds", "deb", "el", "a", "Z", "0", "1", "00", "10", "010", "9", "."}
	for _, m := range marks {
		words = append(words, string(m), string(m))
	}
	return words[r.IntN(len(words))]
}

// mutated inserts or drops one piece of the part after the first digit.
func mutated(r *rand.Rand, text, marks string) string {
	at := len(text) - r.IntN(2)
	if r.IntN(3) == 0 && len(text) > 6 {
		return strings.TrimSuffix(text[:len(text)-1], "-") // an empty revision is no version
	}
	return text[:at] + piece(r, marks) + text[at:]
}

// The order is dpkg's own, whatever this package thinks of it.
func TestDebianOrderAgreesWithDpkg(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("no dpkg on this machine to compare with")
	}
	const n = 4000
	pairs := generatedPairs(7, n, "~+.")
	relation := map[int]string{-1: "lt", 0: "eq", 1: "gt"}
	var wg sync.WaitGroup
	seen := make([]map[string]int, 4)
	for worker := range seen {
		seen[worker] = map[string]int{}
		wg.Go(func() {
			for i := worker; i < n; i += len(seen) {
				a, b := pairs[i][0], pairs[i][1]
				want := relation[CompareDeb(a, b)]
				seen[worker][want]++
				assert.NoError(t, exec.CommandContext(t.Context(), dpkg, "--compare-versions", a, want, b).Run(), "dpkg does not find %s %s %s", a, want, b)
			}
		})
	}
	wg.Wait()
	for _, r := range relation {
		assert.Greater(t, seen[0][r]+seen[1][r]+seen[2][r]+seen[3][r], 50, "too few pairs that are %s to prove anything", r)
	}
}

// The order is rpm's own.
func TestRPMOrderAgreesWithRPM(t *testing.T) {
	rpm, err := exec.LookPath("rpm")
	if err != nil {
		t.Skip("no rpm on this machine to compare with (Debian: apt-get install rpm)")
	}
	pairs := generatedPairs(11, 5000, "~^.+")
	seen := map[string]int{}
	for batch := range 10 {
		part := pairs[batch*500 : (batch+1)*500]
		var lua strings.Builder
		lua.WriteString("%{lua:")
		for _, p := range part {
			fmt.Fprintf(&lua, "print(rpm.vercmp('%s','%s')..'\\n') ", p[0], p[1])
		}
		lua.WriteString("}")
		out, err := exec.CommandContext(t.Context(), rpm, "--eval", lua.String()).Output()
		require.NoError(t, err)
		results := strings.Fields(string(out))
		require.Len(t, results, len(part))
		for i, p := range part {
			assert.Equal(t, results[i], fmt.Sprint(CompareRPM(p[0], p[1])), "rpm.vercmp(%s, %s)", p[0], p[1])
			seen[results[i]]++
		}
	}
	for _, r := range []string{"-1", "0", "1"} {
		assert.Greater(t, seen[r], 50, "too few pairs that compare as %s to prove anything", r)
	}
}

// An epoch in the repository, none in the wish.
func TestRPMEpochsAreNotDropped(t *testing.T) {
	assert.Equal(t, 1, CompareRPM("3:18.09.7-3.el7", "19.03.2-3.el7"))
	assert.Equal(t, -1, CompareRPM("3:18.09.7-3.el7", "3:19.03.2-3.el7"))
	assert.Equal(t, -1, CompareRPM("2.0~rc1-1", "2.0-1"))
	assert.Equal(t, 1, CompareRPM("2.0^git1-1", "2.0-1"))
}
