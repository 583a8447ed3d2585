package rpm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// zyppOptions are the words in the query of a URI that are for libzypp and not for the server.
var zyppOptions = []string{
	"credentials", "proxy", "proxyport", "proxyuser", "proxypass", "auth", "timeout", "ssl_verify", "ssl_capath", "ssl_clientcert", "ssl_clientkey", "head_requests", "mediahandler",
}

// zyppReach adds credentials that a URI names, and a proxy: that of the URI, or the host's.
// Certificates of servers are checked whatever the URI says.
func zyppReach(r *RPM, a access, uri string) (access, error) {
	parsed, err := url.Parse(withoutVariables(uri))
	if err != nil {
		return a, nil //nolint:nilerr // said when it is fetched
	}
	query := parsed.Query()
	values := maps.Clone(a.values.values)
	if values == nil {
		values = map[string]string{}
	}
	delete(values, "proxy") // zypper has no such key
	a.values.values, a.main.values = values, map[string]string{}
	name := query.Get("credentials")
	if name != "" {
		if err := r.zyppCredentials(name, values); err != nil {
			return a, err
		}
	}
	switch host := query.Get("proxy"); {
	case host != "":
		values["proxy"] = "http://" + net.JoinHostPort(host, cmp.Or(query.Get("proxyport"), "3128"))
		values["proxy_username"], values["proxy_password"] = query.Get("proxyuser"), query.Get("proxypass")
	default:
		values["proxy"] = r.sysconfigProxy(parsed)
	}
	// What is left is the server's, a token perhaps, and goes there as it is.
	words := slices.DeleteFunc(strings.Split(a.query, "&"), func(word string) bool {
		key, _, _ := strings.Cut(word, "=")
		return slices.Contains(zyppOptions, key)
	})
	a.query = strings.Join(words, "&")
	return a, nil
}

// zyppCredentials reads a file of user name and password.
func (r *RPM) zyppCredentials(name string, values map[string]string) error {
	path := name
	if !strings.HasPrefix(name, "/") {
		path = "/etc/zypp/credentials.d/" + name
	}
	data, err := os.ReadFile(r.path(filepath.Clean(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("RepoUnavailable", "a package source names the credentials %s, and there is no file %s: register the host again, or write it", name, path)
	}
	if err != nil {
		return fmt.Errorf("reading the credentials of a package source: %w", err)
	}
	for key, value := range assignments(string(data)) {
		if key == "username" || key == "password" {
			values[key] = value
		}
	}
	return nil
}

// sysconfigProxy is the proxy of all programs of a SUSE host; "" for none.
func (r *RPM) sysconfigProxy(uri *url.URL) string {
	data, err := os.ReadFile(r.path("etc/sysconfig/proxy"))
	if err != nil {
		return ""
	}
	set := assignments(string(data))
	if set["PROXY_ENABLED"] != "yes" {
		return ""
	}
	for _, suffix := range strings.FieldsFunc(set["NO_PROXY"], func(c rune) bool { return c == ',' || c == ' ' }) {
		host := uri.Hostname()
		if suffix == "*" || host == strings.TrimPrefix(suffix, ".") || strings.HasSuffix(host, "."+strings.TrimPrefix(suffix, ".")) {
			return ""
		}
	}
	return set[strings.ToUpper(uri.Scheme)+"_PROXY"]
}

// assignments are lines of name=value, the value perhaps in quotes.
func assignments(content string) map[string]string {
	set := map[string]string{}
	for line := range strings.Lines(content) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(key, "#") {
			set[strings.TrimSpace(key)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return set
}
