package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/test/browser"
)

// lines is an output that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// dashboard runs the command until the test ends, and returns the address that it prints.
func (b *bench) dashboard(args ...string) string {
	b.Helper()
	var out, errs lines
	root := newRoot(streams{out: &out, err: &errs})
	root.SetArgs(b.in(append([]string{"dashboard", "--kubeconfig", b.kubeconfig, "--cache-dir", b.TempDir()}, args...)...))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	b.Cleanup(func() {
		stop()
		assert.NoError(b, <-ended, "the end that was asked for is none to complain of")
	})
	require.Eventually(b, func() bool { return strings.Contains(out.String(), "/\n") }, time.Minute, interval, "%s", &errs)
	return strings.TrimSpace(out.String())
}

func (b *bench) makeDashboardFleet() *situation {
	s := &situation{bench: b, pool: "paused: true", slots: []string{"w2=Accepted"}}
	s.make()
	return s
}

func TestTheDashboardServesWhatTheCallerMaySee(t *testing.T) {
	b := newBenches(t)(t)
	b.makeDashboardFleet()
	url := b.dashboard()
	assert.Regexp(t, `^http://127\.0\.0\.1:[0-9]+/[A-Z0-9]{26}/$`, url)
	get := func(url string) (string, int) {
		r, err := http.Get(url)
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(text), r.StatusCode
	}
	page, code := get(url)
	assert.Equal(t, 200, code)
	assert.Contains(t, page, "app.js")
	detail, code := get(url + "machines/" + b.namespace + "-w1")
	assert.Equal(t, 200, code)
	assert.Contains(t, detail, `"reason":"Paused"`)
	assert.Contains(t, detail, "kubectl refit resume workers -n "+b.namespace)
	_, code = get(url[:strings.LastIndex(url[:len(url)-1], "/")] + "/")
	assert.Equal(t, 404, code)
}

func TestTheDashboardRefusesWhatItCannotServe(t *testing.T) {
	b := newBenches(t)(t)
	assert.Contains(t, b.no(usage.ExitCode, "dashboard", "--port", "70000"), "--port 70000 is none")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	assert.Contains(t, b.no(usage.ExitFault, "dashboard", "--port", port), "--port names another one")
	assert.Contains(t, b.no(usage.ExitFault, "dashboard", "--as", "nobody"), "forbidden")
}

// A person with a keyboard, in a real browser, at a page that is fed by a real API server.
func TestAPersonAtTheDashboardSeesMachinesAndChangesAndWhy(t *testing.T) {
	if _, err := browser.Find(); err != nil {
		t.Skip(err)
	}
	b := newBenches(t)(t)
	s := b.makeDashboardFleet()
	page, err := browser.Open(t.Context(), browser.Options{Width: 1200, Height: 800})
	require.NoError(t, err)
	t.Cleanup(page.Close)
	require.NoError(t, page.Go(t.Context(), b.dashboard("--topology-key", "kubernetes.io/hostname")))

	shows := func(expression, want string) {
		t.Helper()
		got := ""
		require.Eventually(t, func() bool {
			return page.Eval(t.Context(), "String("+expression+")", &got) == nil && strings.Contains(got, want)
		},
			patience, interval, "%s has %q", expression, want)
	}
	tile := func(short string) string { return `document.querySelector('[data-name="` + s.name(short) + `"]')` }
	press := func(keys ...string) { t.Helper(); require.NoError(t, page.Press(t.Context(), keys...)) }
	shows(`document.querySelectorAll("[role=option]").length`, "4")
	shows(`document.getElementById("namespace").textContent`, b.namespace)
	shows(`document.querySelector("#grid [role=group]").getAttribute("aria-label")`, "kubernetes.io/hostname")

	m := b.m(s.name("w1"))
	m.Status.Phase = v1alpha1.PhaseDraining
	require.NoError(t, b.client.Status().Update(t.Context(), m))
	shows(tile("w1")+".dataset.phase", "Draining")
	shows(tile("w1")+`.getAttribute("aria-label")`, "Draining, v1.37.1")
	require.NoError(t, b.client.Delete(t.Context(), b.m(s.name("w3"))))
	shows(`document.querySelectorAll("[role=option]").length`, "3")

	press("/")
	shows(`document.activeElement.id`, "filter")
	press("w", "1", "Enter")
	shows(`document.getElementById("shown").textContent`, "1 of 3 machines")
	shows(`document.activeElement.id`, "grid")
	shows(`document.getElementById(document.activeElement.getAttribute("aria-activedescendant")).dataset.name`, s.name("w1"))
	press("/", "Escape")
	shows(`document.getElementById("shown").textContent`, "3 machines")
	press("ArrowRight")
	shows(`document.getElementById(document.activeElement.getAttribute("aria-activedescendant")).dataset.name`, s.name("w2"))
	press("ArrowLeft", "Enter")
	shows(`document.getElementById("detail").textContent`, "MachineDeployment workers is paused")
	shows(`document.querySelector("#detail pre").textContent`, "kubectl refit resume workers -n "+b.namespace)
	shows(`document.activeElement.textContent`, s.name("w1"))

	b.ok("resume", "workers")
	shows(`document.querySelector("#detail").textContent.includes("is paused")`, "false")
	press("Escape")
	shows(`document.activeElement.id`, "grid")
	shows(`document.getElementById("detail").hidden`, "true")
	require.NoError(t, page.Eval(t.Context(), `document.getElementById("tab-timeline").focus()`, nil))
	press("Enter")
	shows(`document.querySelector(".gantt .op").getAttribute("aria-label")`, "at work")
}

// What Chromium gives to a screen reader: every control has a name, and what changes is announced.
func TestAPersonWhoHearsTheDashboardIsToldWhatItShows(t *testing.T) {
	if _, err := browser.Find(); err != nil {
		t.Skip(err)
	}
	b := newBenches(t)(t)
	s := b.makeDashboardFleet()
	page, err := browser.Open(t.Context(), browser.Options{Width: 1200, Height: 800})
	require.NoError(t, err)
	t.Cleanup(page.Close)
	require.NoError(t, page.Go(t.Context(), b.dashboard("--topology-key", "kubernetes.io/hostname")))
	hears := func(what string, is func(browser.Spoken) bool) {
		t.Helper()
		var all []browser.Spoken
		require.Eventually(t, func() bool {
			all, err = page.Accessible(t.Context())
			return err == nil && slices.ContainsFunc(all, is)
		}, patience, interval, "%s: %v, %v", what, &all, &err)
	}
	named := func(role, name string) func(browser.Spoken) bool {
		return func(o browser.Spoken) bool { return o.Role == role && strings.Contains(o.Name, name) }
	}
	hears("the list of machines", func(o browser.Spoken) bool {
		return o.Role == "listbox" && o.Name == "Machines" && strings.Contains(o.Description, "Arrow keys move")
	})
	hears("a machine with its phase and versions", func(o browser.Spoken) bool {
		return named("option", s.name("w1"))(o) && strings.Contains(o.Name, "v1.37.1")
	})
	hears("how a pool's rollout stands", named("meter", "workers: machines up to date"))
	hears("the fleet, whenever it changes", func(o browser.Spoken) bool { return o.Role == "status" && o.Properties["live"] == "polite" })
	require.NoError(t, page.Press(t.Context(), "/"))
	hears("that the keys go to the filter now", func(o browser.Spoken) bool {
		return o.Role == "searchbox" && o.Name != "" && o.Properties["focused"] == "true"
	})
	require.NoError(t, page.Press(t.Context(), "w", "1", "Enter", "Enter"))
	hears("the machine whose details came", func(o browser.Spoken) bool {
		return named("heading", s.name("w1"))(o) && o.Properties["focused"] == "true"
	})
	hears("why it waits", named("StaticText", "MachineDeployment workers is paused"))

	all, err := page.Accessible(t.Context())
	require.NoError(t, err)
	controls := []string{"button", "tab", "radio", "checkbox", "searchbox", "textbox", "combobox", "link", "option", "listbox", "tabpanel", "meter", "table"}
	heard := map[string]int{}
	for _, o := range all {
		if slices.Contains(controls, o.Role) {
			heard[o.Role]++
			assert.NotEmpty(t, o.Name, "a %s without a name is silent", o.Role)
		}
	}
	for _, role := range []string{"button", "tab", "radio", "searchbox", "option", "listbox", "meter", "table"} {
		assert.Positive(t, heard[role], "the page has a %s", role)
	}
}
