package rpm

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// headerTimeout is how long a server may say nothing.
	headerTimeout = 30 * time.Second
	maxRedirects  = 5
)

// access is how a repository is reached: with the proxy, credentials and certificates
// that its section has, or else dnf's own configuration.
type access struct {
	values, main section
	// query goes with every request: the words of a URI behind its question mark.
	query string
}

// access to a repository by its URI, which is in a section of the host unless only a plan names it.
func (r *RPM) access(uri string, host *repo) (access, error) {
	a := access{main: r.main()}
	if host != nil {
		a.values, uri = host.section, host.uri
	}
	_, a.query, _ = strings.Cut(uri, "?")
	return r.dialect.reach(r, a, uri)
}

func (a access) value(key string) string {
	return cmp.Or(a.values.values[key], a.main.values[key])
}

// client makes the client of one repository. Certificates of servers are always checked.
func (r *RPM) client(a access) (*http.Client, error) {
	transport := &http.Transport{ResponseHeaderTimeout: headerTimeout, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if proxy := a.value("proxy"); proxy != "" && proxy != "_none_" {
		uri, err := url.Parse(proxy)
		if err != nil {
			return nil, refuse("SourceInvalid", "the proxy of package source %s is not a URI", a.values.id)
		}
		if user := a.value("proxy_username"); user != "" {
			uri.User = url.UserPassword(user, a.value("proxy_password"))
		}
		transport.Proxy = http.ProxyURL(uri)
	}
	if path := a.value("sslcacert"); path != "" {
		pem, err := os.ReadFile(r.path(path))
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authority of package source %s: %w", a.values.id, err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	if path := a.value("sslclientcert"); path != "" {
		pair, err := tls.LoadX509KeyPair(r.path(path), r.path(cmp.Or(a.value("sslclientkey"), path)))
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate of package source %s: %w", a.values.id, err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: transport, CheckRedirect: a.redirect}, nil
}

// redirect keeps credentials from going to another server than the one they are for, and over
// a connection that is not what they were meant for. No server is told where a request came
// from: the words behind the question mark may be a token.
func (a access) redirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	if len(via) >= maxRedirects {
		return errors.New("too many redirects")
	}
	first := via[0].URL
	secret := a.value("username") != "" || a.value("sslclientcert") != "" || first.User != nil
	switch {
	case secret && req.URL.Host != first.Host:
		return fmt.Errorf("it redirects to %s, which is not followed with credentials", req.URL.Host)
	case secret && first.Scheme == "https" && req.URL.Scheme != first.Scheme:
		return fmt.Errorf("it redirects from https to %s, which is not followed with credentials", req.URL.Scheme)
	}
	return nil
}

// open begins to read a URI. fs.ErrNotExist says that the server has no such file.
func (r *RPM) open(ctx context.Context, a access, uri string) (io.ReadCloser, error) {
	if err := checkURI(uri); err != nil {
		return nil, err
	}
	parsed, _ := url.Parse(uri)
	if parsed.Scheme == "file" || parsed.Scheme == "dir" {
		f, err := os.Open(parsed.Path)
		if err != nil {
			return nil, unavailable(uri, err)
		}
		return f, nil
	}
	client, err := r.client(a)
	if err != nil {
		return nil, err
	}
	if a.query != "" {
		parsed.RawQuery = a.query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, parsed.String(), http.NoBody)
	if err != nil {
		return nil, refuse("SourceInvalid", "package source URI %q: %v", uri, err)
	}
	if user := a.value("username"); user != "" {
		req.SetBasicAuth(user, a.value("password"))
	}
	response, err := client.Do(req)
	if err != nil {
		var told *url.Error
		if errors.As(err, &told) {
			err = told.Err // without the query, which may be a secret
		}
		return nil, unreachable(ctx, uri, err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, answered(uri, response)
	}
	return response.Body, nil
}

// missing is a file that its server says it does not have.
type missing struct{ *upgrade.Blocked }

func (m missing) Unwrap() error        { return m.Blocked }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

func unavailable(uri string, err error) error {
	blocked := refuse("RepoUnavailable", "fetching %s: %v; check the repository's URI; this minor may not be published there", uri, err)
	if errors.Is(err, fs.ErrNotExist) {
		return missing{blocked}
	}
	return blocked
}

func unreachable(ctx context.Context, uri string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("fetching %s: %w", uri, context.Cause(ctx))
	}
	return wait("RepoUnreachable", "fetching %s: %v; the repository is away; it is asked again", uri, err)
}

// answered says what a status means and whether it may pass.
func answered(uri string, response *http.Response) error {
	switch response.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		return unavailable(uri, fmt.Errorf("%s: %w", response.Status, fs.ErrNotExist))
	case http.StatusUnauthorized, http.StatusForbidden:
		return unavailable(uri, errors.New(response.Status))
	}
	return wait("RepoUnreachable", "fetching %s: %s; the repository is away; it is asked again", uri, response.Status)
}

// read fetches a small file into memory.
func (r *RPM) read(ctx context.Context, a access, uri string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	body, err := r.open(ctx, a, uri)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, unreachable(ctx, uri, err)
	}
	if int64(len(data)) > limit {
		return nil, refuse("SourceInvalid", "%s has more than %d bytes, which no repository needs", uri, limit)
	}
	return data, nil
}

// fetch puts a file with a known digest to a path. One that is there already is not fetched again.
func (r *RPM) fetch(ctx context.Context, a access, uri, sha256, target string) error {
	return packagefile.Fetch(uri, sha256, target, r.state("rpm/download"), func(partial string) error {
		return r.download(ctx, a, uri, partial)
	})
}

func (r *RPM) download(ctx context.Context, a access, uri, target string) error {
	ctx, cancel := context.WithTimeout(ctx, r.InstallTimeout)
	defer cancel()
	body, err := r.open(ctx, a, uri)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // only read from
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("making a download: %w", err)
	}
	_, err = io.Copy(out, body)
	switch err = errors.Join(err, out.Close()); {
	case errors.Is(err, syscall.ENOSPC):
		return wait("NoSpace", "downloading %s: %v; free some space", uri, err)
	case err != nil:
		return unreachable(ctx, uri, err)
	}
	return nil
}
