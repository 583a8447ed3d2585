package outage_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-dev/refit/pkg/outage"
)

// get asks a server, as a client library would, and wraps what became of it.
func get(t *testing.T, client *http.Client, address string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err == nil {
		response.Body.Close()
	}
	require.Error(t, err)
	return fmt.Errorf("listing machines: %w", fmt.Errorf("failed to get API group resources: %w", err))
}

func TestAnAPIServerThatIsAwayIsToldInPlainWords(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := closed.Addr().String()
	require.NoError(t, closed.Close())
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, _ := w.(http.Hijacker).Hijack()
		connection.Close()
	}))
	defer cut.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	other := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "another.name"}}}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing listens":           {get(t, http.DefaultClient, "https://"+gone+"/apis"), "the API server at " + gone + " refuses connections"},
		"the name is unknown":       {get(t, http.DefaultClient, "https://nowhere.invalid:6443/apis"), "the API server at nowhere.invalid:6443 cannot be found: the name nowhere.invalid is not resolved"},
		"it hangs":                  {get(t, &http.Client{Timeout: 50 * time.Millisecond}, slow.URL), "does not answer in time"},
		"it cuts the connection":    {get(t, http.DefaultClient, cut.URL), "has ended the connection"},
		"nobody vouches for it":     {get(t, http.DefaultClient, secure.URL), "signed by an authority that the kubeconfig does not name"},
		"it calls itself otherwise": {get(t, other, secure.URL), "it is for another name"},
		"it says so":                {fmt.Errorf("listing: %w", apierrors.NewServiceUnavailable("etcd")), "cannot serve this now"},
		"a wait for it ended":       {fmt.Errorf("client rate limiter: %w", context.DeadlineExceeded), "does not answer in time"},
		"a stream ended":            {fmt.Errorf("watching: %w", io.ErrUnexpectedEOF), "has ended the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			text, away := outage.Describe(tc.err)
			require.True(t, away, tc.err)
			assert.Contains(t, text, tc.want)
			for _, chain := range []string{"dial tcp", "Get \"", "failed to get", "listing", "x509:"} {
				assert.NotContains(t, text, chain)
			}
			assert.Equal(t, text, outage.Text(tc.err))
			if told, ok := outage.Told(tc.err); ok {
				assert.Equal(t, "listing machines: "+text, told, "what we were doing is kept")
			}
		})
	}
}

func TestAnAnswerIsNoOutage(t *testing.T) {
	for _, err := range []error{
		nil, errors.New("no such file"),
		apierrors.NewNotFound(schema.GroupResource{Resource: "machines"}, "w1"),
		apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "w1", errors.New("no")),
		context.Canceled, fmt.Errorf("listing: %w", &url.Error{Op: "Get", URL: "https://x", Err: context.Canceled}),
	} {
		text, away := outage.Describe(err)
		assert.False(t, away, "%v", err)
		assert.Empty(t, text)
	}
	assert.Equal(t, "no such file", outage.Text(errors.New("no such file")))
}
