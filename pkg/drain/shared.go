package drain

import (
	"context"
	"sync"

	"k8s.io/client-go/kubernetes"
)

// shared is one watch for all drains that run at a time. It begins with the first of
// them and ends with the last.
type shared struct {
	client  kubernetes.Interface
	subject subject

	mu    sync.Mutex
	users map[chan struct{}]bool
	now   *watched
	stop  context.CancelFunc
}

// join adds a drain, which is nudged on wake until it leaves.
func (s *shared) join(ctx context.Context, wake chan struct{}) (w *watched, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		own, stop := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the drain that begins it
		s.users, s.stop = map[chan struct{}]bool{}, stop
		s.now = startWatch(own, s.client, s.subject, s.nudge)
	}
	s.users[wake] = true
	return s.now, func() { s.leave(wake) }
}

func (s *shared) leave(wake chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.users[wake] {
		return
	}
	delete(s.users, wake)
	if len(s.users) > 0 {
		return
	}
	s.stop()
	s.now = nil
}

func (s *shared) nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.users {
		signal(wake)
	}
}
