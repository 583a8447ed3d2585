package ledger

// Waiting is how many changes wait for the next write.
func (s *Store) Waiting(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting[namespace])
}
