package board_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func TestOnlyMachinesWithNewWordAreTold(t *testing.T) {
	var told []string
	b := &board.Board{Changed: func(k types.NamespacedName) { told = append(told, k.Name) }}
	full := gates.Verdict{Reason: "BudgetExhausted"}
	b.SetVerdicts("a", map[string]gates.Verdict{"m1": full, "m2": full})
	assert.ElementsMatch(t, []string{"m1", "m2"}, told)

	told = nil
	b.SetVerdicts("a", map[string]gates.Verdict{"m1": full, "m2": {Reason: "Paused"}})
	assert.Equal(t, []string{"m2"}, told)

	told = nil
	b.SetVerdicts("b", map[string]gates.Verdict{})
	assert.Empty(t, told, "another namespace is left alone")

	b.SetVerdicts("a", map[string]gates.Verdict{"m1": full})
	assert.Equal(t, []string{"m2"}, told, "a verdict that is gone is news as well")
	_, held := b.Verdict(key("a", "m2"))
	assert.False(t, held)
}

func TestWhatIsOfTheMomentOrNotKnownYetIsNoNews(t *testing.T) {
	told := 0
	b := &board.Board{Changed: func(types.NamespacedName) { told++ }}
	full := gates.Verdict{Reason: gates.ReasonBudgetExhausted, Message: "none is left", Moment: ": w1 is being worked on"}
	b.SetVerdicts("a", map[string]gates.Verdict{"m1": full})
	require.Equal(t, 1, told)

	later := full
	later.Moment = ": w2 is being worked on"
	b.SetVerdicts("a", map[string]gates.Verdict{"m1": later})
	assert.Equal(t, 1, told)
	v, _ := b.Verdict(key("a", "m1"))
	assert.Equal(t, "none is left: w2 is being worked on", v.Text(), "whoever asks hears of this moment")

	pending := map[string]gates.Verdict{"m1": {Reason: gates.ReasonForecastPending}, "m2": {Reason: gates.ReasonForecastPending}}
	b.SetVerdicts("a", pending)
	assert.Equal(t, 2, told, "only m2, of which nothing was known")
	v, _ = b.Verdict(key("a", "m1"))
	assert.Equal(t, gates.ReasonBudgetExhausted, v.Reason)
	assert.Equal(t, gates.ReasonForecastPending, pending["m1"].Reason, "the caller's own word stays")
}

func TestOverridesAreToldOnChange(t *testing.T) {
	told := 0
	b := &board.Board{Changed: func(types.NamespacedName) { told++ }}
	o := []board.Override{{Field: "spec.versions.kubelet", Manager: "kubectl-edit"}}
	b.SetOverrides(key("a", "m"), o)
	b.SetOverrides(key("a", "m"), o)
	assert.Equal(t, 1, told)
	got, _ := b.Overrides(key("a", "m"))
	assert.Equal(t, o, got)
	b.SetOverrides(key("a", "m"), nil)
	assert.Equal(t, 2, told)
	got, looked := b.Overrides(key("a", "m"))
	assert.Empty(t, got)
	assert.True(t, looked)
}

func TestASkewIsToldOnChangeAndKnownOnlyOnceItWasJudged(t *testing.T) {
	var told []string
	b := &board.Board{Changed: func(k types.NamespacedName) { told = append(told, k.Name) }}
	_, judged := b.Skew(key("a", "m1"))
	assert.False(t, judged)
	b.SetSkews("a", map[string]string{"m1": "kubelet v1.37.2 is newer"})
	b.SetSkews("a", map[string]string{"m1": "kubelet v1.37.2 is newer"})
	assert.Equal(t, []string{"m1"}, told)
	message, judged := b.Skew(key("a", "m1"))
	assert.True(t, judged)
	assert.Equal(t, "kubelet v1.37.2 is newer", message)
	b.SetSkews("a", nil)
	assert.Equal(t, []string{"m1", "m1"}, told)
	message, judged = b.Skew(key("a", "m1"))
	assert.True(t, judged)
	assert.Empty(t, message)
	_, judged = b.Skew(key("b", "m1"))
	assert.False(t, judged)
}

func TestAHaltIsToldToTheMachineThatHoldsASlotAndTakenBack(t *testing.T) {
	var told []string
	b := &board.Board{Changed: func(m types.NamespacedName) { told = append(told, m.String()) }}
	b.SetHalts("a", map[string]gates.Verdict{"m1": {Reason: "CanaryFailed"}})
	m1 := types.NamespacedName{Namespace: "a", Name: "m1"}
	assert.Equal(t, &gates.Verdict{Reason: "CanaryFailed"}, b.Halt(m1))
	assert.Nil(t, b.Halt(types.NamespacedName{Namespace: "b", Name: "m1"}))
	b.SetHalts("a", nil)
	assert.Nil(t, b.Halt(m1))
	assert.Equal(t, []string{"a/m1", "a/m1"}, told)
}

func TestOnlyBudgetsThatAllowSomethingElseAreTold(t *testing.T) {
	var told []string
	b := &board.Board{BudgetChanged: func(k types.NamespacedName) { told = append(told, k.Namespace+"/"+k.Name) }}
	_, judged := b.Budget(key("a", "all"))
	assert.False(t, judged)
	room := v1alpha1.MachineDisruptionBudgetStatus{Machines: 3, DisruptionsAllowed: 1}
	none := v1alpha1.MachineDisruptionBudgetStatus{Machines: 3, Unavailable: 1, UnavailableMachines: []string{"w1"}}
	b.SetBudgets("a", map[string]v1alpha1.MachineDisruptionBudgetStatus{"all": room, "rack": room})
	b.SetBudgets("b", map[string]v1alpha1.MachineDisruptionBudgetStatus{"all": room})
	assert.ElementsMatch(t, []string{"a/all", "a/rack", "b/all"}, told)
	told = nil
	b.SetBudgets("a", map[string]v1alpha1.MachineDisruptionBudgetStatus{"all": none, "rack": room})
	assert.Equal(t, []string{"a/all"}, told)
	st, judged := b.Budget(key("a", "all"))
	require.True(t, judged)
	assert.Equal(t, none, st)
	told = nil
	b.SetBudgets("a", nil)
	_, judged = b.Budget(key("a", "all"))
	assert.False(t, judged)
	assert.Empty(t, told)
}
