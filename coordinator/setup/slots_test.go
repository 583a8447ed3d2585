package setup

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestAWriteOfTheLedgerConcernsTheMachinesWhoseSlotsItChanges(t *testing.T) {
	old := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: "refit", Name: v1alpha1.LedgerName, ResourceVersion: "1"}}
	old.Spec.Epoch = 3
	for _, name := range []string{"w1", "w2", "w3"} {
		old.Spec.Slots = append(old.Spec.Slots, v1alpha1.Slot{Machine: name, GrantID: "grant-" + name, State: v1alpha1.SlotReserved})
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Ledger)
		want   []string
	}{
		"a slot is reserved": {func(l *v1alpha1.Ledger) {
			l.Spec.Slots = append(l.Spec.Slots, v1alpha1.Slot{Machine: "w4", GrantID: "grant-w4"})
		}, []string{"w4"}},
		"a slot advances":                          {func(l *v1alpha1.Ledger) { l.Spec.Slots[1].State = v1alpha1.SlotGranted }, []string{"w2"}},
		"a time is written":                        {func(l *v1alpha1.Ledger) { l.Spec.Slots[2].UncordonedTime = &metav1.Time{Time: time.Unix(1, 0)} }, []string{"w3"}},
		"a slot is released, and another moves up": {func(l *v1alpha1.Ledger) { l.Spec.Slots = l.Spec.Slots[1:] }, []string{"w1"}},
		"a slot is replaced":                       {func(l *v1alpha1.Ledger) { l.Spec.Slots[0].GrantID = "another" }, []string{"w1"}},
		"an annotation is written":                 {func(l *v1alpha1.Ledger) { l.Annotations = map[string]string{"a": "b"} }, []string{}},
		"the stop switch is thrown":                {func(l *v1alpha1.Ledger) { l.Spec.Stopped = true }, []string{"w1", "w2", "w3"}},
		"another leads":                            {func(l *v1alpha1.Ledger) { l.Spec.Epoch++ }, []string{"w1", "w2", "w3"}},
		"it is another ledger":                     {func(l *v1alpha1.Ledger) { l.UID = "another" }, []string{"w1", "w2", "w3"}},
		"a resync":                                 {func(l *v1alpha1.Ledger) { l.ResourceVersion = "1" }, []string{"w1", "w2", "w3"}},
	} {
		t.Run(name, func(t *testing.T) {
			now := old.DeepCopy()
			now.ResourceVersion = "2"
			tc.change(now)
			assert.Equal(t, tc.want, sets.List(changedHolders(old, now)))
		})
	}
}

func TestWhoLooksBecauseOfALedgerFindsIt(t *testing.T) {
	p := &parts{ledger: &ledger.Store{}}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	l := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: "refit", Name: v1alpha1.LedgerName, ResourceVersion: "1"}}
	l.Spec.Slots = []v1alpha1.Slot{{Machine: "w1", GrantID: "a"}}
	p.slots().Create(t.Context(), event.CreateEvent{Object: l}, q)
	assert.Equal(t, "1", p.ledger.Last("refit").ResourceVersion)
	next := l.DeepCopy()
	next.ResourceVersion, next.Spec.Slots = "2", nil
	p.slots().Update(t.Context(), event.UpdateEvent{ObjectOld: l, ObjectNew: next}, q)
	assert.Equal(t, "2", p.ledger.Last("refit").ResourceVersion)
	assert.Equal(t, 1, q.Len(), "w1, once")
}
