package drain_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/pkg/drain"
)

// onDelete answers each deletion of the pod; nil lets it through.
func (c *cluster) onDelete(name string, answer func() error) {
	c.PrependReactor("delete", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.(k8stesting.DeleteAction).GetName() != name {
			return false, nil, nil
		}
		err := answer()
		return err != nil, nil, err
	})
}

func TestARefusedDeletionEndsTheDrainAsABlockedOne(t *testing.T) {
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Message: "the database is not to be touched"}}
	for name, tc := range map[string]struct {
		answer    error
		denyAll   bool
		reason    string
		says      string
		permanent bool
	}{
		"by admission with a 403": {answer: forbidden("pods"), reason: drain.ReasonDeletionForbidden, says: "an admission webhook or policy refuses to let it be deleted past its budget"},
		"by admission with a 422": {answer: refusal, reason: drain.ReasonDeletionForbidden, says: "the database is not to be touched"},
		"by a webhook with a 404": {answer: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 404, Message: "no ticket"}},
			reason: drain.ReasonDeletionForbidden, says: "no ticket"},
		"by a webhook with a 409": {answer: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 409, Message: "a backup runs"}},
			reason: drain.ReasonDeletionForbidden, says: "a backup runs"},
		"by a role": {answer: forbidden("pods"), denyAll: true, reason: drain.ReasonMissingPermission, says: "delete pods in namespace shop", permanent: true},
		"by an API server that fails for good": {answer: apierrors.NewInternalError(errors.New("etcd is away")), reason: drain.ReasonEvictionFailed,
			says: "deleting it past its budget failed and is tried again"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod("db"), pod("web"))
			c.always["db"], c.always["web"] = budgetError("b", 0), budgetError("b", 0)
			c.onDelete("db", func() error { return tc.answer })
			c.denyAll = tc.denyAll
			result, err := c.drain(t, drain.Options{Timeout: 200 * time.Millisecond, OnTimeout: drain.ActionDelete})
			b := requireBlocked(t, err)
			assert.Equal(t, tc.reason, b.Reason)
			assert.Equal(t, tc.permanent, b.Permanent)
			assert.Contains(t, b.Message, "shop/db")
			assert.Contains(t, b.Message, tc.says)
			require.Len(t, b.Pods, 1)
			assert.Equal(t, 1, result.Deleted, "the other pod is deleted all the same")
			assert.Contains(t, c.deletes, "web")
		})
	}
}

func TestADeletionThatFailsForAWhileIsTriedAgain(t *testing.T) {
	c := newCluster(t, pod("db"))
	c.always["db"] = budgetError("b", 0)
	var tries atomic.Int32
	c.onDelete("db", func() error {
		if tries.Add(1) < 4 {
			return errors.New("dial tcp: connection refused")
		}
		return nil
	})
	result, err := c.drain(t, drain.Options{Timeout: 200 * time.Millisecond, OnTimeout: drain.ActionDelete})
	require.NoError(t, err)
	assert.Equal(t, 1, result.Deleted)
	assert.EqualValues(t, 4, tries.Load())
}

func TestADrainThatNeverLearnsWhatAPodIsEndsAsABlockedOne(t *testing.T) {
	c := newCluster(t, pod("a"), daemonSet("cni"))
	c.lingers["a"] = true
	c.PrependReactor("get", "daemonsets", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
	})
	time.AfterFunc(100*time.Millisecond, func() {
		<-c.watching
		_ = c.Tracker().Create(podsResource, pod("late", ofDaemonSet("cni")), "shop")
		c.remove("a")
	})
	_, err := c.drain(t, drain.Options{Timeout: time.Second})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonEvictionFailed, b.Reason)
	assert.Contains(t, b.Message, "etcd is away")
}
