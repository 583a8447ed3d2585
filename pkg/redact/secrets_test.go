package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/pkg/redact"
)

const key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\nhunter2\n-----END RSA PRIVATE KEY-----"

func TestNoCredentialIsInAText(t *testing.T) {
	for name, text := range map[string]string{
		"a URI":                     "from https://user:hunter2@mirror/deb",
		"a key":                     "before " + key,
		"a key in JSON":             `{"key":"` + strings.ReplaceAll(key, "\n", `\n`) + `"}`,
		"a key without its end":     "before -----BEGIN PRIVATE KEY-----\nMIIE\nhunter2",
		"a key without its begin":   "hunter2\nMIIE\n-----END EC PRIVATE KEY-----\nafter",
		"a header":                  "Authorization: Bearer hunter2hunter2",
		"a basic header":            "authorization: Basic aHVudGVyMg==hunter2",
		"a setting":                 "password=hunter2 next",
		"a quoted setting":          `DB_PASSWORD="hunter2 hunter2"`,
		"a setting in JSON":         `{"password":"hunter2","user":"a"}`,
		"a setting in JSON in JSON": `{"a":"{\"password\":\"hunter2\"}"}`,
		"a setting in YAML":         "client-key-data: hunter2",
		"a flag":                    "--token hunter2 --x",
		"a flag with =":             "--bootstrap-token=hunter2",
		"a query":                   "https://m/?access_token=hunter2&x=y",
	} {
		t.Run(name, func(t *testing.T) {
			got := redact.Secrets(text)
			assert.NotContains(t, got, "hunter2")
			assert.Contains(t, got, redact.Removed)
			assert.Equal(t, got, redact.Secrets(got), "it stays so")
		})
	}
	for _, token := range []string{
		"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl", "abcdef.0123456789abcdef", "ghp_0123456789abcdefghij", "AKIA0123456789ABCDEF",
		"LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo=",
	} {
		assert.Equal(t, "it is "+redact.Removed+", says it", redact.Secrets("it is "+token+", says it"))
	}
}

func TestWhatABugIsFoundWithStays(t *testing.T) {
	for _, text := range []string{
		"kubelet v1.36.3, wants v1.37.2", "openssl 3.0.15-1~deb12u1", "pod shop/web-0: budget web allows 0 disruptions",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "2026-05-01T12:00:00Z", "basic auth is off",
		"6f1c2b3d-0a1b-4c5d-8e9f-001122334455", "refit-op-6f1c2b.service", "k8s.io.api.core", "the secret of success",
	} {
		assert.Equal(t, text, redact.Secrets(text))
	}
}

func TestAValueWhoseNameTellsIsTakenOut(t *testing.T) {
	assert.Equal(t, map[string]any{
		"password": redact.Removed, "secretName": "tls", "tokenExpirationSeconds": "60", "name": "w1",
		"env": []any{map[string]any{"name": "DB_PASSWORD", "value": redact.Removed}, map[string]any{"name": "POD_NAME", "value": "x"}},
	}, redact.Object(map[string]any{
		"password": "hunter2", "secretName": "tls", "tokenExpirationSeconds": "60", "name": "w1",
		"env": []any{map[string]any{"name": "DB_PASSWORD", "value": "hunter2"}, map[string]any{"name": "POD_NAME", "value": "x"}},
	}))
}

func FuzzSecrets(f *testing.F) {
	f.Add("password=", "x")
	f.Add("", key)
	f.Add("Bearer ", "aaaaaaa")
	f.Fuzz(func(t *testing.T, before, after string) {
		got := redact.Secrets(before + " token=hunter2sesame " + after)
		assert.NotContains(t, got, "hunter2sesame")
	})
}
