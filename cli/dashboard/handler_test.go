package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/verbs"
)

const token = "sesame"

// site is a page that is served.
type site struct {
	*testing.T
	hub  *Hub
	host string
}

func serve(t *testing.T, edits ...func(*Config)) *site {
	s := &site{T: t, hub: NewHub("refit", zone)}
	server := httptest.NewUnstartedServer(nil)
	s.host = server.Listener.Addr().String()
	c := Config{Hub: s.hub, Token: token, Hosts: []string{s.host}, Gather: time.Millisecond, Why: func(_ context.Context, machine string) (verbs.Explanation, error) {
		return verbs.Explanation{Machine: machine, Standing: verbs.StandingNext}, nil
	}}
	for _, edit := range edits {
		edit(&c)
	}
	server.Config.Handler = Handler(c)
	server.Start()
	t.Cleanup(server.Close)
	return s
}

func (s *site) ask(method, path string, edits ...func(*http.Request)) *http.Response {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.host+path, nil)
	require.NoError(s, err)
	for _, edit := range edits {
		edit(r)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	require.NoError(s, err)
	s.Cleanup(func() { response.Body.Close() })
	return response
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

func TestOnlyThePageItselfIsAnswered(t *testing.T) {
	s := serve(t)
	s.hub.Put(machine("secret"))
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(value string) func(*http.Request) { return func(r *http.Request) { r.Host = value } }
	for name, tc := range map[string]struct {
		method, path string
		edit         func(*http.Request)
		want         int
	}{
		"the page":                          {"GET", "/sesame/", nil, 200},
		"its own request":                   {"GET", "/sesame/machines/secret", header("Sec-Fetch-Site", "same-origin"), 200},
		"its own origin":                    {"GET", "/sesame/machines/secret", header("Origin", "http://"+s.host), 200},
		"typed into the address bar":        {"GET", "/sesame/", header("Sec-Fetch-Site", "none"), 200},
		"no token":                          {"GET", "/", nil, 404},
		"another token":                     {"GET", "/sesamf/machines/secret", nil, 404},
		"a part of the token":               {"GET", "/sesam/machines/secret", nil, 404},
		"a token that goes on":              {"GET", "/sesame2/machines/secret", nil, 404},
		"a token without what is behind it": {"GET", "/sesame", nil, 404},
		"a file without the token":          {"GET", "/app.js", nil, 404},
		"the stream without the token":      {"GET", "/events", nil, 404},
		"a name that resolves to here":      {"GET", "/sesame/machines/secret", host("evil.example:80"), 403},
		"the same name at another port":     {"GET", "/sesame/machines/secret", host("127.0.0.1:1"), 403},
		"no host":                           {"GET", "/sesame/machines/secret", host("x"), 403},
		"another origin":                    {"GET", "/sesame/machines/secret", header("Origin", "http://evil.example"), 403},
		"no origin to speak of":             {"GET", "/sesame/machines/secret", header("Origin", "null"), 403},
		"the same origin with TLS":          {"GET", "/sesame/machines/secret", header("Origin", "https://"+s.host), 403},
		"another page's picture":            {"GET", "/sesame/icon.svg", header("Sec-Fetch-Site", "cross-site"), 403},
		"another port's page":               {"GET", "/sesame/events", header("Sec-Fetch-Site", "same-site"), 403},
		"something to be written":           {"POST", "/sesame/machines/secret", nil, 405},
		"something to be taken away":        {"DELETE", "/sesame/machines/secret", nil, 405},
		"a way out of the assets":           {"GET", "/sesame/..%2fhandler.go", nil, 404},
		"a machine that is not there":       {"GET", "/sesame/machines/other", nil, 404},
	} {
		t.Run(name, func(t *testing.T) {
			edits := []func(*http.Request){}
			if tc.edit != nil {
				edits = append(edits, tc.edit)
			}
			r := s.ask(tc.method, tc.path, edits...)
			assert.Equal(t, tc.want, r.StatusCode)
			assert.Equal(t, policy, r.Header.Get("Content-Security-Policy"))
			assert.Equal(t, "no-referrer", r.Header.Get("Referrer-Policy"))
			assert.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
			assert.Equal(t, "no-store", r.Header.Get("Cache-Control"))
			assert.Empty(t, r.Header.Get("Access-Control-Allow-Origin"))
			if tc.want != 200 {
				assert.NotContains(t, body(t, r), "v1.37.1")
			}
		})
	}
	assert.NotContains(t, policy, "unsafe")
}

func TestEveryAssetIsServedAndNoneHasAnythingInline(t *testing.T) {
	s := serve(t)
	files, err := assets.ReadDir("assets")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		r := s.ask("GET", "/sesame/"+f.Name())
		text := body(t, r)
		assert.Equal(t, 200, r.StatusCode, f.Name())
		assert.NotEmpty(t, r.Header.Get("Content-Type"), f.Name())
		for _, inline := range []string{"<style", " style=\"", "<script>", " onclick=", "javascript:", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", `setAttribute("style"`} {
			assert.NotContains(t, text, inline, f.Name())
		}
		assert.NotContains(t, strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), "http", "%s asks nobody else", f.Name())
	}
	assert.Contains(t, body(t, s.ask("GET", "/sesame/")), "<title>Refit</title>")
	assert.Equal(t, "text/javascript; charset=utf-8", s.ask("GET", "/sesame/app.js").Header.Get("Content-Type"))
}

// event of a stream.
type event struct {
	name string
	data string
}

// open begins a stream.
func (s *site) open() (next func() event) {
	s.Helper()
	r := s.ask("GET", "/sesame/events")
	require.Equal(s, 200, r.StatusCode)
	require.Equal(s, "text/event-stream", r.Header.Get("Content-Type"))
	in := bufio.NewReader(r.Body)
	return func() event {
		s.Helper()
		var e event
		for {
			line, err := in.ReadString('\n')
			require.NoError(s, err)
			switch line = strings.TrimSuffix(line, "\n"); {
			case strings.HasPrefix(line, "event: "):
				e.name = strings.TrimPrefix(line, "event: ")
			case strings.HasPrefix(line, "data: "):
				e.data = strings.TrimPrefix(line, "data: ")
			case line == "" && e.name != "":
				return e
			}
		}
	}
}

// told is a delta as a browser reads it.
type told struct {
	Rows    []Row    `json:"rows"`
	Gone    []string `json:"gone"`
	Summary *Summary `json:"summary"`
}

func read(t *testing.T, e event) told {
	t.Helper()
	require.Equal(t, "delta", e.name, e.data)
	var d told
	require.NoError(t, json.Unmarshal([]byte(e.data), &d))
	return d
}

func TestAStreamBeginsWithEveryMachineAndGoesOnWithChanges(t *testing.T) {
	s := serve(t)
	s.hub.Put(pool("workers"))
	s.hub.Put(machine("w1"))
	s.hub.Put(machine("w2"))
	next := s.open()
	assert.Equal(t, "begin", next().name)
	first := read(t, next())
	require.Len(t, first.Rows, 2)
	assert.Equal(t, "w1", first.Rows[0].Name)
	assert.Equal(t, Summary{Namespace: "refit", TopologyKey: zone, Machines: 2, Pools: []Pool{{Name: "workers"}}}, *first.Summary)
	assert.Equal(t, "ready", next().name)

	s.hub.Put(machine("w1")) // nothing that shows
	s.hub.Put(machine("w2", func(m *v1alpha1.Machine) { m.Status.Phase = v1alpha1.PhaseDraining }))
	d := read(t, next())
	require.Len(t, d.Rows, 1)
	assert.Equal(t, "w2 Draining", d.Rows[0].Name+" "+d.Rows[0].Phase)
	assert.Nil(t, d.Summary)

	s.hub.Remove(machine("w1"))
	d = read(t, next())
	assert.Equal(t, []string{"w1"}, d.Gone)
	assert.Equal(t, 1, d.Summary.Machines)

	s.hub.Trouble("/x", "the API server does not answer")
	assert.Equal(t, []string{"the API server does not answer"}, read(t, next()).Summary.Trouble)
	s.hub.Trouble("/x", "")
	assert.Empty(t, read(t, next()).Summary.Trouble)
}

func TestManyChangesAreGatheredIntoOneDelta(t *testing.T) {
	s := serve(t, func(c *Config) { c.Gather = 250 * time.Millisecond })
	for i := range 20 {
		s.hub.Put(machine(fmt.Sprintf("w%02d", i)))
	}
	next := s.open()
	for next().name != "ready" {
		continue
	}
	phases := []v1alpha1.Phase{v1alpha1.PhaseDraining, v1alpha1.PhaseApplying, v1alpha1.PhaseReady}
	for _, phase := range phases {
		for i := range 20 {
			s.hub.Put(machine(fmt.Sprintf("w%02d", i), func(m *v1alpha1.Machine) { m.Status.Phase = phase }))
		}
	}
	deltas, last := 0, map[string]string{}
	for len(last) < 20 || strings.Contains(fmt.Sprint(last), "ing") {
		deltas++
		for _, row := range read(t, next()).Rows {
			last[row.Name] = row.Phase
		}
	}
	assert.LessOrEqual(t, deltas, 3, "60 changes")
}

// A page that is opened later sees all, and one that is slow misses nothing: what it has not been sent is known by name.
func TestALateAndASlowBrowserSeeWhatIsThere(t *testing.T) {
	h := NewHub("refit", zone)
	slow := h.join(9)
	for i := range 1200 {
		h.Put(machine(fmt.Sprintf("w%04d", i)))
	}
	for _, phase := range []v1alpha1.Phase{v1alpha1.PhaseDraining, v1alpha1.PhaseReady} {
		h.Put(machine("w0007", func(m *v1alpha1.Machine) { m.Status.Phase = phase }))
	}
	h.Remove(machine("w0008"))
	for name, v := range map[string]*viewer{"slow": slow, "late": h.join(9)} {
		seen, gone, takes := map[string]Row{}, []string{}, 0
		for d := h.take(v, batch); !d.empty(); d = h.take(v, batch) {
			takes++
			assert.LessOrEqual(t, len(d.Rows), batch)
			for _, text := range d.Rows {
				var row Row
				require.NoError(t, json.Unmarshal(text, &row))
				assert.NotContains(t, seen, row.Name, "each once")
				seen[row.Name] = row
			}
			gone = append(gone, d.Gone...)
		}
		assert.Equal(t, 3, takes, name)
		assert.Len(t, seen, 1199, name)
		assert.Equal(t, "Ready", seen["w0007"].Phase, name)
		assert.Equal(t, name == "slow", len(gone) == 1, name)
	}
}

func TestABrowserThatLeavesMakesRoomForAnother(t *testing.T) {
	s := serve(t, func(c *Config) { c.Viewers = 1 })
	ctx, leave := context.WithCancel(t.Context())
	first := s.ask("GET", "/sesame/events", func(r *http.Request) { *r = *r.WithContext(ctx) })
	assert.Equal(t, 200, first.StatusCode)
	second := s.ask("GET", "/sesame/events")
	assert.Equal(t, 503, second.StatusCode)
	assert.Contains(t, body(t, second), "close one")
	leave()
	require.Eventually(t, func() bool { return s.ask("GET", "/sesame/events").StatusCode == 200 }, 20*time.Second, 20*time.Millisecond)
}

func TestTheDetailOfAMachineHasWhyAndWhatTheHostSays(t *testing.T) {
	var failure error
	s := serve(t, func(c *Config) {
		c.Why = func(_ context.Context, name string) (verbs.Explanation, error) {
			return verbs.Explanation{Machine: name, Standing: verbs.StandingWaiting, Reason: "Paused"}, failure
		}
	})
	s.hub.Put(machine("w1", func(m *v1alpha1.Machine) {
		m.Status.Plan = &v1alpha1.PlanStatus{Steps: []string{"reboot"}, Findings: []v1alpha1.Finding{{Severity: "Warning", Reason: "Old", Message: "is old"}}, Disruption: v1alpha1.DisruptionReboot}
		m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	}))
	ask := func() (d Detail) {
		require.NoError(t, json.Unmarshal([]byte(body(t, s.ask("GET", "/sesame/machines/w1"))), &d))
		return d
	}
	d := ask()
	assert.Equal(t, "Paused", d.Why.Reason)
	assert.Equal(t, []string{"reboot"}, d.Steps)
	assert.Equal(t, "Old", d.Findings[0].Reason)
	assert.Equal(t, "Ready", d.Conditions[0].Type)
	failure = errors.New("no such kind")
	d = ask()
	assert.Nil(t, d.Why)
	assert.Equal(t, "no such kind", d.WhyFailed, "the rest is shown all the same")
	assert.NotEmpty(t, d.Conditions)
}

type answers struct {
	status int
	err    error
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.status, Status: fmt.Sprint(a.status), Body: http.NoBody}, nil
}

func TestASourceThatFailsIsToldUntilItAnswersAgain(t *testing.T) {
	h := NewHub("refit", zone)
	a := &answers{status: 200}
	transport := Observe(a, h.Trouble)
	ask := func(ctx context.Context, path string) []string {
		r := httptest.NewRequestWithContext(ctx, "GET", path, nil)
		_, _ = transport.RoundTrip(r)
		return h.summary().Trouble
	}
	assert.Empty(t, ask(t.Context(), "/machines"))
	a.err = errors.New("connection refused")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Empty(t, ask(ended, "/machines"), "we ended it")
	assert.Len(t, ask(t.Context(), "/machines"), 1)
	assert.Len(t, ask(t.Context(), "/nodes"), 1, "the same words once")
	a.err, a.status = nil, 403
	assert.Len(t, ask(t.Context(), "/nodes"), 2)
	a.status = 200
	assert.Len(t, ask(t.Context(), "/machines"), 1)
	assert.Empty(t, ask(t.Context(), "/nodes"))
}

func TestTokensAreLongAndNeverTheSame(t *testing.T) {
	assert.GreaterOrEqual(t, len(NewToken()), 26)
	one, other := NewToken(), NewToken()
	assert.NotEqual(t, one, other)
}
