// Package audit reads the audit log of an API server: what a test says of requests is
// taken from there, and not from the program that sent them.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// nodeNameKey is where a bound token says from which node it comes.
const nodeNameKey = "authentication.kubernetes.io/node-name"

// Request is one request that an API server has taken: one event, or the two of a watch.
type Request struct{ auditv1.Event }

// Node is the node that a token is bound to, "" for other credentials.
func (r Request) Node() string {
	if names := r.User.Extra[nodeNameKey]; len(names) == 1 {
		return names[0]
	}
	return ""
}

// Between lists the requests that came in from start until end, in the order in which they were written down.
// A watch that began earlier and goes on is none of them. No file means no request.
func Between(file string, start, end time.Time) ([]Request, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer f.Close()
	all, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log %s: %w", file, err)
	}
	var out []Request
	for _, r := range all {
		if at := r.RequestReceivedTimestamp.Time; !at.Before(start) && at.Before(end) {
			out = append(out, r)
		}
	}
	return out, nil
}

func read(from io.Reader) ([]Request, error) {
	seen := map[string]bool{}
	var out []Request
	lines := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // what is left has no end yet: it is being written
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		var r Request
		if err := json.Unmarshal(line, &r.Event); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if id := string(r.AuditID); !seen[id] { // a watch is written down when it begins and when it ends
			seen[id] = true
			out = append(out, r)
		}
	}
}
