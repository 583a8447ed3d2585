package redact

import (
	"regexp"
	"strings"
)

// Removed stands where something was taken out.
const Removed = "REDACTED"

// secretName is a key whose value is nobody's business: of a setting, an environment variable, a header.
const secretName = `[A-Za-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|key[_-]?data|credential)[A-Za-z0-9_.-]*`

var (
	secretKey = regexp.MustCompile(`(?i)^` + secretName + `$`)
	shapes    = []struct {
		is *regexp.Regexp
		to string
	}{
		// keys, also one whose begin or end was cut off with the rest of a log; \n may be two characters
		{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), Removed},
		{regexp.MustCompile(`(?s)\A(?:[A-Za-z0-9+/=\s]|\\n)*-----END [A-Z0-9 ]*PRIVATE KEY-----`), Removed},
		// the same once more encoded, as kubeconfigs and Secrets have it
		{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]+`), Removed},
		{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), Removed},
		{regexp.MustCompile(`(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}${2}" + Removed},
		{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), Removed},
		{regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA)[A-Za-z0-9_-]{10,}`), Removed},
		{regexp.MustCompile(`(?i)(` + secretName + `(?:\\?["'])?\s*[=:]\s*)(?:\\?"[^"\\]*\\?"|'[^']*'|[^\s"',;&}\\]+)`), "${1}" + Removed},
		{regexp.MustCompile(`(?i)(--` + secretName + `\s+)[^\s"',;&}\\]+`), "${1}" + Removed},
	}
)

// Secrets is a text without what looks like a credential: keys, tokens, passwords, users and passwords of URIs. What has
// no shape and no name that tells it cannot be known.
func Secrets(text string) string {
	text = URIs(text)
	for _, s := range shapes {
		text = s.is.ReplaceAllString(text, s.to)
	}
	return text
}

// Object is a decoded JSON value with Secrets taken out of each text in it, and without the values of keys that name one:
// {password: x} as well as {name: DB_PASSWORD, value: x}.
func Object(value any) any {
	switch v := value.(type) {
	case string:
		return Secrets(v)
	case []any:
		for i := range v {
			v[i] = Object(v[i])
		}
	case map[string]any:
		name, _ := v["name"].(string)
		out := make(map[string]any, len(v))
		for key, inner := range v {
			text, isText := inner.(string)
			if isText && text != "" && (secretKey.MatchString(key) || key == "value" && secretKey.MatchString(name)) && !reference(key) {
				inner = Removed
			}
			out[Secrets(key)] = Object(inner)
		}
		return out
	}
	return value
}

// reference keys name where a secret is, and hold none.
func reference(key string) bool {
	return strings.HasSuffix(key, "Name") || strings.HasSuffix(key, "Ref") || strings.HasSuffix(key, "Seconds")
}
