package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

type heart struct {
	renewals atomic.Int32
	err      error
}

func (h *heart) Renew(context.Context, time.Time) error {
	h.renewals.Add(1)
	return h.err
}

func TestAHostForWhichNoKubeletSpeaksSaysSoAgainAndAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		roles []v1alpha1.Role
		err   error
		beats bool
	}{
		"etcd alone":                     {[]v1alpha1.Role{v1alpha1.RoleEtcd}, nil, true},
		"etcd alone, without the right":  {[]v1alpha1.Role{v1alpha1.RoleEtcd}, errors.New("forbidden"), true},
		"etcd and a kubelet with a Node": {[]v1alpha1.Role{v1alpha1.RoleEtcd, v1alpha1.RoleWorker}, nil, false},
		"a worker":                       {[]v1alpha1.Role{v1alpha1.RoleWorker}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &heart{err: tc.err}
			a := New(Deps{Heartbeat: h, Timing: Timing{Beat: time.Millisecond}})
			a.beat(t.Context())
			assert.Zero(t, h.renewals.Load(), "nothing is said before the Machine is known")
			a.machine = &v1alpha1.Machine{}
			a.machine.Spec.Roles = tc.roles
			if !tc.beats {
				a.beat(t.Context())
				assert.False(t, a.beating.running)
				return
			}
			for i := range int32(3) {
				require.Eventually(t, func() bool { a.beat(t.Context()); return a.beating.running }, time.Minute, time.Millisecond)
				a.beat(t.Context())
				(<-a.results)()
				assert.Equal(t, i+1, h.renewals.Load(), "one at a time")
			}
			a.beating.due, a.wake = time.Now().Add(time.Hour), time.Time{}
			a.beat(t.Context())
			assert.False(t, a.beating.running)
			assert.Equal(t, a.beating.due, a.wake, "it wakes up for the next one")
		})
	}
}
