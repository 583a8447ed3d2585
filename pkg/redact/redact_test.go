package redact_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/redact"
)

func TestNoCredentialOfAURIIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"https://user:secret@mirror.corp/deb/ is away":    "https://REDACTED@mirror.corp/deb/ is away",
		"https://token@mirror.corp":                       "https://REDACTED@mirror.corp",
		"deb [signed-by=/k] http://u:p%40ss@m/deb ./":     "deb [signed-by=/k] http://REDACTED@m/deb ./",
		"http://u:p@ss@m/deb":                             "http://REDACTED@m/deb",
		"mirror+https://u:p@m/a, and http://v:q@n/b":      "mirror+https://REDACTED@m/a, and http://REDACTED@n/b",
		`{"uri":"https://u:s\u0026cret@m/"}`:              `{"uri":"https://REDACTED@m/"}`,
		`{"message":"https://m/x\nsomebody@example.com"}`: `{"message":"https://m/x\nsomebody@example.com"}`,
		"http://m:8080/deb, ask root@example.com":         "http://m:8080/deb, ask root@example.com",
		"https://m/pool/a@b.deb":                          "https://m/pool/a@b.deb",
		"containerd://1.7.20":                             "containerd://1.7.20",
		"https://REDACTED@m/":                             "https://REDACTED@m/",
	} {
		assert.Equal(t, want, redact.URIs(text))
		assert.Equal(t, want, string(redact.Bytes([]byte(text))))
	}
}

func FuzzURIs(f *testing.F) {
	for _, seed := range [][2]string{{"user", "secret"}, {"a&b", "c;d=e+f"}, {"", "x"}, {"ü", "p@s/s?#"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, user, password string) {
		if !json.Valid([]byte(`"`+user+password+`"`)) || strings.ContainsAny(user+password, "\\") {
			return
		}
		uri := (&url.URL{Scheme: "https", User: url.UserPassword(user, password), Host: "m", Path: "/deb"}).String()
		require.Equal(t, "https://REDACTED@m/deb", redact.URIs(uri))
		encoded, err := json.Marshal(uri)
		require.NoError(t, err)
		require.Equal(t, `"https://REDACTED@m/deb"`, string(redact.Bytes(encoded)))
	})
}
