package watch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
)

// server answers lists and watches by script.
type server struct {
	mu       sync.Mutex
	requests []string
	answers  []func(w http.ResponseWriter, r *http.Request)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.String())
	answer := hang
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	answer(w, r)
}

func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

func hang(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func machine(version string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Name: "w1", Namespace: "refit", ResourceVersion: version},
	}
}

func list(version string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v1alpha1.MachineList{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MachineList"},
			ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []v1alpha1.Machine{*machine(version)},
		})
	}
}

func events(all ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, event := range all {
			_, _ = fmt.Fprintln(w, event)
		}
		w.(http.Flusher).Flush()
	}
}

func event(kind, version string) string {
	object, _ := json.Marshal(machine(version))
	return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object)
}

const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`

func failure(code int, header map[string]string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range header {
			w.Header().Set(k, v)
		}
		http.Error(w, "away", code)
	}
}

func follow(t *testing.T, answers ...func(http.ResponseWriter, *http.Request)) (*server, chan watch.Event) {
	t.Helper()
	s := &server{answers: answers}
	ts := httptest.NewServer(s)
	client, err := watch.NewClient(&rest.Config{Host: ts.URL}, "refit", "w1")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	events, done := make(chan watch.Event), make(chan struct{})
	go func() {
		defer close(done)
		(&watch.Watcher{Client: client, Spread: 10 * time.Millisecond}).Run(ctx, events)
	}()
	t.Cleanup(func() { cancel(); <-done; ts.CloseClientConnections(); ts.Close() })
	return s, events
}

func next(t *testing.T, events chan watch.Event) watch.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event came")
		return watch.Event{}
	}
}

func TestWatchAsksForOneMachineOnly(t *testing.T) {
	s, events := follow(t, list("5"))
	e := next(t, events)
	assert.True(t, e.Fresh)
	assert.Equal(t, "5", e.Machine.ResourceVersion)
	require.Eventually(t, func() bool { return len(s.seen()) == 2 }, 5*time.Second, time.Millisecond)
	for _, request := range s.seen() {
		assert.True(t, strings.HasPrefix(request, "/apis/refit.dev/v1alpha1/namespaces/refit/machines?"), request)
		assert.Contains(t, request, "fieldSelector=metadata.name%3Dw1")
	}
	assert.Contains(t, s.seen()[1], "resourceVersion=5")
	assert.Contains(t, s.seen()[1], "allowWatchBookmarks=true")
	var seconds int
	_, err := fmt.Sscanf(s.seen()[1][strings.Index(s.seen()[1], "timeoutSeconds="):], "timeoutSeconds=%d", &seconds)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, seconds, 20*60)
}

func TestExpiredWatchListsAgainAtOnce(t *testing.T) {
	_, stream := follow(t, list("5"), events(event("MODIFIED", "6"), expired), list("9"))
	assert.Equal(t, "5", next(t, stream).Machine.ResourceVersion)
	assert.Equal(t, "6", next(t, stream).Machine.ResourceVersion)
	start := time.Now()
	e := next(t, stream)
	assert.Equal(t, "9", e.Machine.ResourceVersion)
	assert.True(t, e.Fresh, "versions may go back here")
	assert.Less(t, time.Since(start), time.Second, "less than the first backoff")
}

func TestBookmarkIsNoChangeAndDeletionIsOne(t *testing.T) {
	_, stream := follow(t, list("5"), events(event("BOOKMARK", "7"), event("DELETED", "8")))
	next(t, stream)
	e := next(t, stream)
	assert.Nil(t, e.Machine)
}

func TestCutWatchComesBack(t *testing.T) {
	s, stream := follow(t, list("5"), events(event("MODIFIED", "6")), list("7"))
	next(t, stream)
	next(t, stream)
	assert.Equal(t, "7", next(t, stream).Machine.ResourceVersion)
	assert.GreaterOrEqual(t, len(s.seen()), 3)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	_, stream := follow(t, failure(http.StatusTooManyRequests, map[string]string{"Retry-After": "2"}), list("5"))
	start := time.Now()
	next(t, stream)
	assert.GreaterOrEqual(t, time.Since(start), 2*time.Second)
}

func TestBackoffGrowsWithJitterAndIsBounded(t *testing.T) {
	b := watch.Backoff{First: time.Second, Max: time.Minute}
	for i := range 100 {
		base := min(time.Minute, time.Second<<min(i, 10))
		got := b.Next(nil)
		assert.GreaterOrEqual(t, got, base/2)
		assert.LessOrEqual(t, got, base*3/2+1)
	}
	b.Reset()
	assert.LessOrEqual(t, b.Next(nil), 1500*time.Millisecond)
}
