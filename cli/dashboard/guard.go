package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"path"
	"strings"
)

// policy lets the page run its own files, and speak to its own origin. Nothing inline runs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// NewToken is one that cannot be guessed.
func NewToken() string { return rand.Text() }

// guard lets through what the page itself asks, under a path that begins with the token. A name that was made to
// resolve to this address (DNS rebinding) is not among the hosts; another page in the same browser has another Origin.
func guard(token string, hosts []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Referrer-Policy", "no-referrer") // the address has the token in it
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		if !isOurs(r, hosts) {
			http.Error(w, "this page is served to the browser of the desk that it runs on, under the address that kubectl refit dashboard has printed", http.StatusForbidden)
			return
		}
		rest, known := opened(r.URL.Path, token)
		switch {
		case !known:
			http.Error(w, "not found: open the address that kubectl refit dashboard has printed, with all that is behind the port", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			head.Set("Allow", "GET, HEAD")
			http.Error(w, "the dashboard only shows: use kubectl refit to change something", http.StatusMethodNotAllowed)
		default:
			inner := r.Clone(r.Context())
			inner.URL.Path, inner.URL.RawPath = rest, ""
			next.ServeHTTP(w, inner)
		}
	})
}

func isOurs(r *http.Request, hosts []string) bool {
	for _, host := range hosts {
		if r.Host != host {
			continue
		}
		origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
		return (origin == "" || origin == "http://"+host) && (site == "" || site == "same-origin" || site == "none")
	}
	return false
}

// opened is the path behind the token.
func opened(asked, token string) (rest string, ok bool) {
	given, rest, _ := strings.Cut(strings.TrimPrefix(asked, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 || !strings.HasPrefix(asked, "/"+given+"/") {
		return "", false
	}
	return "/" + rest, path.Clean("/"+rest) == "/"+rest // the library would redirect any other, to where the token is not
}
