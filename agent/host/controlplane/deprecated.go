package controlplane

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// adminPath is what kubeadm's own upgrade uses on a control-plane host. Metrics are for
	// administrators only: neither everybody nor a kubelet is let in.
	adminPath = "/etc/kubernetes/admin.conf"
	// Metrics of a large cluster are tens of megabytes; only one line in thousands is kept.
	metricsTimeout = 30 * time.Second
	maxMetricsLine = 1 << 20
)

// DeprecatedAPIs are the APIs on their way out that somebody has asked this host's API
// server for since it was started, as it counts them itself.
func (c *ControlPlane) DeprecatedAPIs(ctx context.Context) ([]upgrade.DeprecatedAPIFacts, error) {
	address, err := c.Address()
	if err != nil {
		return nil, err
	}
	config, err := c.adminTLS()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, Proxy: nil} // never through a proxy: it is this host
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking this host's API server at %s for its metrics: %w", address, err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking this host's API server at %s for its metrics with %s: status %d", address, adminPath, answer.StatusCode)
	}
	return deprecatedIn(answer.Body)
}

// adminTLS trusts the cluster's CA and shows the client certificate of the admin's kubeconfig.
func (c *ControlPlane) adminTLS() (*tls.Config, error) {
	data, err := os.ReadFile(c.path(adminPath))
	if err != nil {
		return nil, fmt.Errorf("reading the admin's kubeconfig: %w", err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("reading the admin's kubeconfig %s: %w", adminPath, err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.AuthInfos[current.AuthInfo] == nil {
		return nil, fmt.Errorf("reading the admin's kubeconfig %s: it has no current context with a user", adminPath)
	}
	user := config.AuthInfos[current.AuthInfo]
	certificate, err := c.orFile(user.ClientCertificateData, user.ClientCertificate)
	if err != nil {
		return nil, err
	}
	key, err := c.orFile(user.ClientKeyData, user.ClientKey)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("loading the client certificate of %s: %w", adminPath, err)
	}
	out, err := c.tls(false)
	if err != nil {
		return nil, err
	}
	out.Certificates = []tls.Certificate{pair}
	return out, nil
}

func (c *ControlPlane) orFile(data []byte, path string) ([]byte, error) {
	if len(data) > 0 {
		return data, nil
	}
	if path == "" {
		return nil, fmt.Errorf("%s has no client certificate", adminPath)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(adminPath), path)
	}
	data, err := os.ReadFile(c.path(path))
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate of %s: %w", adminPath, err)
	}
	return data, nil
}

const deprecatedMetric = "apiserver_requested_deprecated_apis{"

var label = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)

// deprecatedIn reads the one metric out of all of them. APIs that nobody has said the end of are left out.
func deprecatedIn(metrics io.Reader) ([]upgrade.DeprecatedAPIFacts, error) {
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, maxMetricsLine)
	var out []upgrade.DeprecatedAPIFacts
	seen := false
	for lines.Scan() {
		seen = seen || strings.HasPrefix(lines.Text(), "apiserver_")
		labels, ok := strings.CutPrefix(lines.Text(), deprecatedMetric)
		if !ok {
			continue
		}
		if api := deprecatedAPI(labels); api.RemovedRelease != "" && !slices.Contains(out, api) {
			out = append(out, api)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	if !seen {
		return nil, errors.New("reading the metrics of the API server: there are none of an API server in the answer")
	}
	return out, nil
}

func deprecatedAPI(labels string) upgrade.DeprecatedAPIFacts {
	named := map[string]string{}
	for _, m := range label.FindAllStringSubmatch(labels, -1) {
		named[m[1]] = m[2]
	}
	return upgrade.DeprecatedAPIFacts{
		Group: named["group"], Version: named["version"], Resource: named["resource"], Subresource: named["subresource"],
		RemovedRelease: named["removed_release"],
	}
}
