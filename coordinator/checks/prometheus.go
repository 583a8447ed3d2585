package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// mostAnswer is how much of an answer is read.
const mostAnswer = 1 << 20

var (
	errRedirect = errors.New("it answers with a redirect, which is not followed: name the server itself")
	errTooLarge = fmt.Errorf("its answer is larger than %d bytes: aggregate in the query", mostAnswer)
)

// query asks a Prometheus server. It passes with at least one sample and none that is zero;
// whatever is not an answer is not known, and never passes.
func query(ctx context.Context, p *v1alpha1.PrometheusCheck) (fleet.CheckState, string) {
	unknown := func(err error) (fleet.CheckState, string) {
		return fleet.CheckUnknown, fmt.Sprintf("asking %s: %s", p.URL, firstLines(err.Error()))
	}
	client, err := api.NewClient(api.Config{Address: p.URL, Client: &http.Client{
		Transport:     bounded{api.DefaultRoundTripper},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}})
	if err != nil {
		return unknown(err)
	}
	value, warnings, err := promv1.NewAPI(client).Query(ctx, p.Query, time.Time{})
	switch {
	case err != nil && ctx.Err() != nil:
		return unknown(fmt.Errorf("no answer within %s", askTimeout))
	case err != nil:
		return unknown(err)
	case len(warnings) > 0:
		return unknown(fmt.Errorf("it warns that %s", warnings[0]))
	}
	return judge(value)
}

func judge(value model.Value) (fleet.CheckState, string) {
	switch v := value.(type) {
	case *model.Scalar:
		return judgeSamples(model.Vector{{Value: v.Value}})
	case model.Vector:
		return judgeSamples(v)
	}
	return fleet.CheckFailed, fmt.Sprintf("the query gives a %s, and must give an instant vector or a scalar", value.Type())
}

func judgeSamples(all model.Vector) (fleet.CheckState, string) {
	if len(all) == 0 {
		return fleet.CheckFailed, "the query gives no sample"
	}
	for _, s := range all {
		if s.Value == 0 || math.IsNaN(float64(s.Value)) { // NaN says nothing
			return fleet.CheckFailed, firstLines(fmt.Sprintf("the sample %s is %s", s.Metric, s.Value))
		}
	}
	return fleet.CheckPassed, ""
}

// bounded reads no more of an answer than it has to.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // the client says what was asked
	}
	resp.Body = &limited{body: resp.Body, left: mostAnswer}
	return resp, nil
}

type limited struct {
	body io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.body.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err //nolint:wrapcheck // io.EOF has to stay itself
}

func (l *limited) Close() error { return l.body.Close() } //nolint:wrapcheck // of a reader
