package logs_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/logs"
	"github.com/refit-dev/refit/pkg/usage"
)

// kubelet is what an API server passes on of a node's kubelet: journal by unit, or an answer of its own.
func kubelet(t *testing.T, answer http.HandlerFunc) rest.Interface {
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: srv.URL})
	require.NoError(t, err)
	return kube.CoreV1().RESTClient()
}

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestTheJournalOfAnOperationIsRead(t *testing.T) {
	var asked []string
	core := kubelet(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/v1/nodes/w1/proxy/logs/", r.URL.Path)
		asked = append(asked, r.URL.RawQuery)
		if r.URL.Query().Get("query") == "refit-resume" {
			_, _ = w.Write([]byte("went on after the boot\n"))
			return
		}
		_, _ = w.Write([]byte("fetching https://user:hunter2@mirror/deb\n"))
	})
	text, err := logs.Read(t.Context(), core, "w1", logs.Operation{ID: "g1", Start: &start}, 50)
	require.NoError(t, err)
	assert.Equal(t, "fetching https://REDACTED@mirror/deb\n-- refit-resume.service --\nwent on after the boot\n", text)
	assert.Equal(t, []string{"query=refit-op-g1&tailLines=50", "query=refit-resume&sinceTime=2026-05-01T12%3A00%3A00Z&tailLines=50"}, asked)
}

func TestAKubeletThatGivesNoJournalSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		status       int
		answer, says string
	}{
		"it lists /var/log, and takes no queries": {200, "<!doctype html>\n<meta>\n<pre>\n<a href=\"apt/\">apt/</a>\n", "enableSystemLogQuery"},
		"it lists /var/log, as older ones do":     {200, "<pre>\n<a href=\"apt/\">apt/</a>\n", "enableSystemLogQuery"},
		"its journal does not have the unit":      {200, "\nlog not found for refit-op-g1\n", "rotated away"},
		"nor with a number of lines":              {200, "\noptions present and query resolved to log files for [refit-op-g1]\ntry without specifying options\n", "rotated away"},
		"it has no journalctl":                    {200, "\nerror: journal output not available\n", "could not read the journal"},
		"it says nothing":                         {200, "", "answered with nothing"},
		"its logs endpoint is off":                {405, "logs endpoint is disabled.", "does not answer"},
		"nobody may ask it":                       {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`, "nodes/proxy"},
		"it is away":                              {503, "error trying to reach service", "does not answer"},
		"there is no such node":                   {404, "not found", "no Node w1"},
	} {
		t.Run(name, func(t *testing.T) {
			core := kubelet(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.answer))
			})
			_, err := logs.Read(t.Context(), core, "w1", logs.Operation{ID: "g1"}, 0)
			var elsewhere logs.Elsewhere
			require.ErrorAs(t, err, &elsewhere)
			assert.Contains(t, elsewhere.Reason, tc.says)
		})
	}
	assert.Empty(t, logs.Refusal("May 01 12:00:00.000000 w1 refit-executor[1]: log not found for x is what it printed"))
	assert.Empty(t, logs.Refusal(strings.Repeat("a line\n", 1000)))
}

func TestAnOperationIsFoundByItsID(t *testing.T) {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
	op, err := logs.Find(m, "")
	require.NoError(t, err)
	assert.Empty(t, op.ID, "nothing was ever done")

	at := metav1.NewTime(start)
	m.Status.History = []v1alpha1.HistoryEntry{{ID: "g1", Type: v1alpha1.OperationUpgrade, State: v1alpha1.OperationFailed, Reason: "RolledBack", StartTime: &at}}
	op, err = logs.Find(m, "")
	require.NoError(t, err)
	assert.Equal(t, logs.Operation{ID: "g1", Start: &at.Time, Lines: []string{"operation g1 (Upgrade): Failed RolledBack"}}, op)

	m.Status.LastOperation = &v1alpha1.Operation{ID: "g2", Type: v1alpha1.OperationUpgrade, State: v1alpha1.OperationProcessing, Step: "Stage", StepsTotal: 3, Description: "from https://u:p@m/"}
	op, err = logs.Find(m, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"operation g2 (Upgrade): Processing, step 1 of 3: Stage", "from https://REDACTED@m/"}, op.Lines)
	op, err = logs.Find(m, "g1")
	require.NoError(t, err)
	assert.Equal(t, "g1", op.ID)
	_, err = logs.Find(m, "g9")
	assert.True(t, usage.Is(err))
	assert.ErrorContains(t, err, "g2, g1")
}
