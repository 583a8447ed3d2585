// Package coordinator tests the coordinator as it is shipped: the real program under
// its real RBAC against a real API server. What is simulated is said here and nowhere
// hidden: the agents (goroutines that speak the protocol with their own credential and
// server-side apply), and the kubelets (goroutines that renew leases, post node status
// and take evicted pods away).
package coordinator
