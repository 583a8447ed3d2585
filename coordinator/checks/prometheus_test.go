package checks

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/stretchr/testify/assert"
)

func vector(samples ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
}

func sample(value string) string {
	return `{"metric":{"job":"x"},"value":[1700000000,"` + value + `"]}`
}

// serve answers every query with that, and is asked.
func serve(t *testing.T, h http.HandlerFunc) (fleet.CheckState, string) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	return query(t.Context(), &v1alpha1.PrometheusCheck{URL: s.URL, Query: "up == bool 1"})
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}
}

func TestAQueryPassesWithASampleAndNoneThatIsZero(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   fleet.CheckState
		says   string
	}{
		"one":              {says(vector(sample("1"))), fleet.CheckPassed, ""},
		"several":          {says(vector(sample("1"), sample("0.5"), sample("-2"), sample("+Inf"))), fleet.CheckPassed, ""},
		"a scalar":         {says(`{"status":"success","data":{"resultType":"scalar","result":[1700000000,"3"]}}`), fleet.CheckPassed, ""},
		"one of them zero": {says(vector(sample("1"), sample("0"))), fleet.CheckFailed, `{job="x"} is 0`},
		"not a number":     {says(vector(sample("NaN"))), fleet.CheckFailed, "NaN"},
		"no sample":        {says(vector()), fleet.CheckFailed, "no sample"},
		"a scalar of zero": {says(`{"status":"success","data":{"resultType":"scalar","result":[1700000000,"0"]}}`), fleet.CheckFailed, "is 0"},
		"a range":          {says(`{"status":"success","data":{"resultType":"matrix","result":[]}}`), fleet.CheckFailed, "instant vector"},
		"a string":         {says(`{"status":"success","data":{"resultType":"string","result":[1700000000,"1"]}}`), fleet.CheckUnknown, "string"},
		"a mistake in it": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			says(`{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}`)(w, r)
		}, fleet.CheckUnknown, "parse error"},
		"an answer in part": {says(strings.Replace(vector(sample("1")), `"status":"success"`, `"status":"success","warnings":["one store did not answer"]`, 1)), fleet.CheckUnknown, "one store did not answer"},
		"an error":          {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusServiceUnavailable) }, fleet.CheckUnknown, "503"},
		"no JSON":           {says("<html>sign in</html>"), fleet.CheckUnknown, ""},
		"nothing":           {says(""), fleet.CheckUnknown, ""},
		"too much":          {says(vector(sample("1"), strings.Repeat(" ", mostAnswer), sample("1"))), fleet.CheckUnknown, "larger than"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, fleet.CheckUnknown, "redirect, which is not followed"},
		"a success of an error": {says(`{"status":"error","errorType":"timeout","error":"query timed out"}`), fleet.CheckUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state, message := serve(t, tc.answer)
			assert.Equal(t, tc.want, state, message)
			assert.Contains(t, message, tc.says)
		})
	}
}

func TestTheQueryAsksForWhatIsAndSendsNoCredentials(t *testing.T) {
	state, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/v1/query", r.URL.Path)
		assert.Equal(t, "up == bool 1", r.FormValue("query"))
		assert.Empty(t, r.Header.Get("Authorization"))
		says(vector(sample("1")))(w, r)
	})
	assert.Equal(t, fleet.CheckPassed, state)
}

func TestAServerThatIsNotThereOrDoesNotAnswerNeverPasses(t *testing.T) {
	state, message := query(t.Context(), &v1alpha1.PrometheusCheck{URL: "http://127.0.0.1:1", Query: "1"})
	assert.Equal(t, fleet.CheckUnknown, state)
	assert.Contains(t, message, "127.0.0.1:1")

	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer s.Close()
	defer close(done)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	state, message = query(ctx, &v1alpha1.PrometheusCheck{URL: s.URL, Query: "1"})
	assert.Equal(t, fleet.CheckUnknown, state)
	assert.Contains(t, message, "no answer within")
}

func FuzzAnAnswerThatIsNoneNeverPasses(f *testing.F) {
	for _, body := range []string{vector(sample("1")), vector(), vector(sample("NaN")), `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[]}]}}`, "[]", `{"status":"success"}`, `{"status":"success","data":null}`} {
		f.Add(body)
	}
	answer := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { says(answer)(w, r) }))
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, body string) {
		answer = body
		state, _ := query(t.Context(), &v1alpha1.PrometheusCheck{URL: s.URL, Query: "1"})
		if state == fleet.CheckPassed && !strings.Contains(body, "success") && !strings.Contains(body, `\u`) {
			t.Errorf("passes with %q", body)
		}
	})
}
