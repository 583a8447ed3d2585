package dashboard

import (
	"fmt"
	"net/http"

	"github.com/refit-dev/refit/pkg/outage"
)

// observer tells how each source of what is shown is: a watch that cannot be begun again leaves the page as it was.
type observer struct {
	next http.RoundTripper
	tell func(source, text string)
}

// Observe tells of requests that fail, and of the same ones when they succeed again.
func Observe(next http.RoundTripper, tell func(source, text string)) http.RoundTripper {
	return &observer{next, tell}
}

func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(r)
	switch {
	case r.Context().Err() != nil: // given up by us
	case err != nil:
		o.tell(r.URL.Path, "the API server does not answer: what is shown is as it was before ("+outage.Text(err)+")")
	case response.StatusCode == http.StatusGone: // the watch begins anew, with a list
	case response.StatusCode >= http.StatusBadRequest:
		o.tell(r.URL.Path, fmt.Sprintf("the API server answers %q for %s: what is shown of that is as it was before", response.Status, r.URL.Path))
	default:
		o.tell(r.URL.Path, "")
	}
	return response, err //nolint:wrapcheck // it is another's answer, passed on
}
