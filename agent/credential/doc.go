// Package credential keeps the token of a host's ServiceAccount, refit-machine-NAME, fresh: where
// the kubelet's certificate is not taken, in a management cluster and in the DaemonSet's form.
//
//	          ┌── 2/3 of its life, with jitter ──┐
//	token in a file ──> TokenRequest for itself ──> replaced at once, mode 0600
//	          └── the API server is away: again and again, until the token has ended
//
// The token itself is never logged; whoever reads the file reads it anew for each connection.
package credential
