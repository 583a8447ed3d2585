package metrics_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refit-dev/refit/coordinator/metrics"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const grafana = "../../deploy/grafana"

type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for,omitempty"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

func alerts(t *testing.T) rules {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(grafana, "alerts.yaml"))
	require.NoError(t, err)
	var r rules
	require.NoError(t, yaml.UnmarshalStrict(text, &r))
	require.NotEmpty(t, r.Groups)
	return r
}

type dashboard struct {
	Panels []struct {
		ID      int    `json:"id"`
		Title   string `json:"title"`
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

func board(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(grafana, "dashboard.json"))
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

var nameOfMetric = regexp.MustCompile(`\brefit_[a-z_]+`)

func assertKnown(t *testing.T, where, expr string) {
	t.Helper()
	known := map[string]bool{}
	for _, d := range metrics.Definitions() {
		known[d.Name] = true
		if d.Kind == metrics.Histogram {
			known[d.Name+"_bucket"], known[d.Name+"_sum"], known[d.Name+"_count"] = true, true, true
		}
	}
	names := nameOfMetric.FindAllString(expr, -1)
	assert.NotEmpty(t, names, where)
	for _, name := range names {
		assert.True(t, known[name], "%s: %s is not collected", where, name)
	}
}

func TestAlertsAndDashboardAskForMetricsThatThereAre(t *testing.T) {
	for _, g := range alerts(t).Groups {
		for _, r := range g.Rules {
			assertKnown(t, r.Alert, r.Expr)
		}
	}
	d := board(t)
	for _, p := range d.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			assertKnown(t, p.Title, target.Expr)
		}
	}
}

func TestTheDashboardShowsEveryMetricOrAnAlertLooksAtIt(t *testing.T) {
	var all strings.Builder
	for _, g := range alerts(t).Groups {
		for _, r := range g.Rules {
			all.WriteString(r.Expr + "\n")
		}
	}
	for _, p := range board(t).Panels {
		for _, target := range p.Targets {
			all.WriteString(target.Expr + "\n")
		}
	}
	used := map[string]bool{}
	for _, name := range nameOfMetric.FindAllString(all.String(), -1) {
		used[strings.TrimSuffix(name, "_bucket")] = true
	}
	for _, d := range metrics.Definitions() {
		if d.Name == "refit_rollout_paused" || d.Name == "refit_machines_up_to_date" {
			continue // for those who ask; the ratio shows the latter
		}
		assert.True(t, used[d.Name], d.Name)
	}
}

func TestThePanelsOfTheDashboardDoNotOverlap(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range board(t).Panels {
		assert.False(t, ids[p.ID], "id of %s", p.Title)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			assert.Less(t, x, 24, p.Title)
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Empty(t, taken[[2]int{x, y}], p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// A link to the runbook leads to a heading that is there.
func TestEveryAlertHasItsPlaceInTheRunbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	anchors := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(page), -1) {
		plain := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	for _, g := range alerts(t).Groups {
		for _, r := range g.Rules {
			page, anchor, found := strings.Cut(r.Annotations["runbook_url"], "#")
			require.True(t, found, r.Alert)
			assert.Equal(t, "https://github.com/refit-dev/refit/blob/main/docs/operations.md", page, r.Alert)
			assert.True(t, anchors[anchor], "%s: #%s is no heading of docs/operations.md", r.Alert, anchor)
			assert.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
			assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		}
	}
}

// Where Prometheus' own tool is installed it has the last word on the rules.
func TestPromtoolTakesTheAlerts(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool (Debian: package prometheus) is not installed")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = grafana
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "promtool %v: %s", args, out)
	}
}
