package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// line is one event of a log, at a second of a minute.
func line(second int, who, verb, resource, name, response string) string {
	parts := strings.SplitN(resource, "/", 2)
	sub := ""
	if len(parts) == 2 {
		sub = parts[1]
	}
	return fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"user":{"username":%q},`+
		`"objectRef":{"resource":%q,"subresource":%q,"namespace":"shop","name":%q},"responseStatus":{"code":200},`+
		`"responseObject":%s,"requestReceivedTimestamp":"2026-01-01T00:00:%02d.000000Z","stageTimestamp":"2026-01-01T00:00:%02d.500000Z"}`+"\n",
		verb, who, parts[0], sub, name, response, second, second)
}

func podIs(ready string) string {
	return `{"metadata":{"name":"a","namespace":"shop","uid":"u","labels":{"app":"web"}},"status":{"conditions":[{"type":"Ready","status":"` + ready + `"}]}}`
}

func budgetIs(version, allowed int, disrupted string) string {
	return fmt.Sprintf(`{"metadata":{"name":"web","namespace":"shop","uid":"b","resourceVersion":"%d"},"spec":{"selector":{"matchLabels":{"app":"web"}}},`+
		`"status":{"disruptionsAllowed":%d,"disruptedPods":{%s}}}`, version, allowed, disrupted)
}

func TestTheJudgeFindsWhatADrainMayNotDo(t *testing.T) {
	const gone = `"a":"2026-01-01T00:00:05Z"`
	pod := line(1, "kubelet", "patch", "pods/status", "a", podIs("True"))
	open := line(2, "controller", "update", "poddisruptionbudgets/status", "web", budgetIs(10, 1, ""))
	closed := line(2, "controller", "update", "poddisruptionbudgets/status", "web", budgetIs(10, 0, ""))
	charge := line(5, "system:apiserver", "update", "poddisruptionbudgets/status", "web", budgetIs(11, 0, gone))
	evicted := line(5, "drainer", "create", "pods/eviction", "a", `{"kind":"Status"}`)
	for name, tc := range map[string]struct{ log, violation string }{
		"an eviction that the budget allowed":    {pod + open + charge + evicted, ""},
		"one while it allowed none":              {pod + closed + charge + evicted, "Ready pod shop/a was evicted while budget shop/web allowed 0"},
		"one that it was not asked for":          {pod + open + evicted, "Ready pod shop/a was evicted without being taken out of budget shop/web"},
		"a pod without a budget":                 {pod + evicted, ""},
		"a pod that was not ready":               {line(1, "kubelet", "patch", "pods/status", "a", podIs("False")) + closed + evicted, ""},
		"a pod that nobody knows":                {evicted, "pod shop/a was evicted, and the log does not know it"},
		"a deletion":                             {pod + line(5, "drainer", "delete", "pods", "a", podIs("True")), "drainer deleted pod shop/a without the policy"},
		"a deletion by someone else":             {pod + line(5, "kubelet", "delete", "pods", "a", podIs("True")), ""},
		"a budget that is opened by the drainer": {line(5, "drainer", "patch", "poddisruptionbudgets", "web", budgetIs(12, 9, "")), "drainer asked to patch budget shop/web"},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := parse([]byte(tc.log))
			require.NoError(t, err)
			v := log.Judge(Rules{Drainers: []string{"drainer"}}).Violations
			if tc.violation == "" {
				assert.Empty(t, v)
				return
			}
			assert.Equal(t, []string{tc.violation}, v)
		})
	}
}

func TestTheJudgeTellsTheRefusalsOfABudgetFromOthers(t *testing.T) {
	refused := func(name, causes string) string {
		l := line(5, "drainer", "create", "pods/eviction", name, `{"kind":"Status","code":429,"details":{"causes":[`+causes+`]}}`)
		return strings.Replace(l, `"responseStatus":{"code":200}`, `"responseStatus":{"code":429}`, 1)
	}
	log, err := parse([]byte(refused("a", `{"reason":"DisruptionBudget","message":"it needs 1"}`) + refused("b", "") + refused("c", `{"reason":"Other"}`)))
	require.NoError(t, err)
	assert.Equal(t, Verdict{Refused: 3, RefusedByBudget: 1}, log.Judge(Rules{Drainers: []string{"drainer"}}))
	assert.Empty(t, log.Of("other"))
	assert.Len(t, log.Of("shop"), 3)
}

func TestTheJudgeFindsEveryChargeThatIsLeftOut(t *testing.T) {
	log, err := parse([]byte(line(1, "kubelet", "patch", "pods/status", "a", podIs("True")) +
		line(2, "controller", "update", "poddisruptionbudgets/status", "web", budgetIs(10, 1, "")) +
		line(5, "system:apiserver", "update", "poddisruptionbudgets/status", "web", budgetIs(11, 0, `"a":"2026-01-01T00:00:05Z"`)) +
		line(5, "drainer", "create", "pods/eviction", "a", `{"kind":"Status"}`)))
	require.NoError(t, err)
	rules := Rules{Drainers: []string{"drainer"}}
	require.Equal(t, Verdict{Evictions: 1, Charged: 1}, log.Judge(rules))
	assert.Len(t, log.Uncharged().Judge(rules).Violations, 1)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(line(1, "kubelet", "patch", "pods/status", "a", podIs("True")) + line(5, "drainer", "create", "pods/eviction", "a", `{}`)))
	f.Add([]byte("{}\n{\"stage\":"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		log, err := parse(text)
		if err == nil {
			log.Judge(Rules{Drainers: []string{"drainer", ""}})
			log.Requests()
			log.MostWatches()
		}
	})
}
