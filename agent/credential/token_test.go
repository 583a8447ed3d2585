package credential

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tokenOf is a token as an API server writes it, unsigned.
func tokenOf(subject string, from, until time.Time) string {
	claims := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, subject, from.Unix(), until.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

const w1 = "system:serviceaccount:refit:refit-machine-w1"

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestATokenSaysForWhichMachineItIs(t *testing.T) {
	c, err := Parse(tokenOf(w1, noon, noon.Add(time.Hour)) + "\n")
	require.NoError(t, err)
	assert.Equal(t, "refit", c.Namespace)
	assert.Equal(t, "w1", c.Machine())
	assert.True(t, c.Expires.Equal(noon.Add(time.Hour)))

	c, err = Parse(tokenOf("system:serviceaccount:refit:default", noon, noon.Add(time.Hour)))
	require.NoError(t, err)
	assert.Empty(t, c.Machine())
}

func TestWhatIsNoTokenIsRefusedWithoutBeingQuoted(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "a password": "hunter2hunter2", "two parts": "e30.e30", "no base64": "e30.!!!.e30", "no JSON": "e30.aGk.e30",
		"another subject": tokenOf("system:node:w1", noon, noon.Add(time.Hour)),
		"no end":          tokenOf(w1, noon, time.Unix(0, 0)),
		"an end before":   tokenOf(w1, noon, noon.Add(-time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(text)
			require.ErrorIs(t, err, errNoToken)
			for part := range strings.SplitSeq(text, ".") {
				if len(part) > 3 {
					assert.NotContains(t, err.Error(), part)
				}
			}
		})
	}
}

func TestATokenIsRenewedAroundTwoThirdsOfItsLife(t *testing.T) {
	c, err := Parse(tokenOf(w1, noon, noon.Add(100*time.Hour)))
	require.NoError(t, err)
	assert.Equal(t, 60*time.Hour, c.renewAt(0).Sub(noon))
	assert.Equal(t, 73*time.Hour, c.renewAt(1).Sub(noon))
	one, other := c.nextRenewal(), c.nextRenewal()
	assert.NotEqual(t, one, other, "not all at once")
}

func FuzzToken(f *testing.F) {
	f.Add(tokenOf(w1, noon, noon.Add(time.Hour)))
	f.Add("a.b.c")
	f.Add("e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount::","exp":1e300}`)) + ".x")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		if c.Expires.Before(c.IssuedAt) || c.renewAt(1).After(c.Expires.Add(time.Second)) || c.Namespace == "" || c.Account == "" {
			t.Fatalf("%+v", c)
		}
	})
}
