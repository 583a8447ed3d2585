// Package drain tests pkg/drain against a real API server with the real disruption
// controller. Only the kubelet is played: it marks pods ready and ends those that
// are being deleted.
package drain
