// Package outage says in plain words that an API server is away, and how. What a library
// makes of it is a chain of the calls in which it was found out.
package outage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Describe says how the API server of a request is away; ok is false for an error that it answered with,
// or that has nothing to do with it.
func Describe(err error) (text string, ok bool) {
	var request *url.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return "", false
	case errors.As(err, &request):
		return "the API server at " + server(request.URL) + " " + fault(request.Err), true
	case apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsTooManyRequests(err):
		return "the API server answers that it cannot serve this now", true
	case errors.Is(err, context.DeadlineExceeded):
		return "the API server does not answer in time", true
	case isCut(err):
		return "the API server has ended the connection", true
	}
	return "", false
}

// Text is Describe, or the error's own words where the API server is not away.
func Text(err error) string {
	if text, away := Describe(err); away {
		return text
	}
	return err.Error()
}

// Told is an error's text with the library's chain replaced by Describe; ok is false where
// it has none of a request that found the API server away.
func Told(err error) (text string, ok bool) {
	var request *url.Error
	plain, away := Describe(err)
	if !away || !errors.As(err, &request) {
		return "", false
	}
	ours, _, _ := strings.Cut(err.Error(), request.Error())
	ours, _, _ = strings.Cut(ours, "failed to get API group resources") // which the client asks for before the first request
	ours, _, _ = strings.Cut(ours, "failed to get server groups")
	return ours + plain, true
}

// server is whom a request went to.
func server(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return "an address that cannot be read"
}

func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// fault is what became of a request.
func fault(err error) string {
	var name *net.DNSError
	var wait net.Error
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("cannot be found: the name %s is not resolved", name.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections: nothing listens there, or it is being restarted"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "cannot be reached: there is no route to it"
	case errors.As(err, &certificate):
		return "has a certificate that is not trusted: " + distrust(certificate.Err)
	case errors.As(err, &alert):
		return "does not take this client's certificate: " + strings.TrimPrefix(alert.Error(), "tls: ")
	case isCut(err):
		return "has ended the connection"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &wait) && wait.Timeout():
		return "does not answer in time"
	}
	return "cannot be reached: " + innermost(err).Error()
}

func distrust(err error) string {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return "it is signed by an authority that the kubeconfig does not name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "it has expired or is not yet valid: compare the clocks, and see kubeadm certs check-expiration on the host"
	case errors.As(err, &host):
		return "it is for another name"
	}
	return innermost(err).Error()
}

func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
