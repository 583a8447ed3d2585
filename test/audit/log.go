package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

// Bodies is a policy that keeps what pods and budgets were after each request.
var Bodies = []byte(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: "", resources: [pods, pods/status, pods/eviction]}
  - {group: policy, resources: [poddisruptionbudgets, poddisruptionbudgets/status]}
- level: Metadata
`)

// Counts is a policy that keeps who asked what, and no bodies.
var Counts = []byte(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: [system:nodes]
- level: Metadata
`)

// Event is what counts of an audit.k8s.io/v1 Event.
type Event struct {
	Stage            string
	Verb             string
	RequestURI       string
	UserAgent        string
	User             user
	ImpersonatedUser *user
	ObjectRef        struct{ Resource, Namespace, Name, Subresource string }
	ResponseStatus   struct{ Code int }
	RequestObject    json.RawMessage
	ResponseObject   json.RawMessage
	Received         time.Time `json:"requestReceivedTimestamp"`
	At               time.Time `json:"stageTimestamp"`
}

type user struct {
	Username string
	Extra    map[string][]string
}

// Node is the node that a token is bound to, "" for other credentials.
func (e *Event) Node() string {
	if names := e.User.Extra["authentication.kubernetes.io/node-name"]; len(names) == 1 {
		return names[0]
	}
	return ""
}

// Who asked: the impersonated user where there is one.
func (e *Event) Who() string {
	if e.ImpersonatedUser != nil {
		return e.ImpersonatedUser.Username
	}
	return e.User.Username
}

// Succeeded says that the server did what was asked.
func (e *Event) Succeeded() bool { return e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300 }

// Log is an audit log in the order in which its requests were answered.
type Log []Event

// Read reads the log as it is now.
func Read(t testing.TB, path string) Log {
	t.Helper()
	log, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// Load is Read for a TestMain.
func Load(path string) (Log, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	log, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log %s: %w", path, err)
	}
	return log, nil
}

// parse reads the lines of a log; the last one may still be in the writing.
func parse(text []byte) (Log, error) {
	if end := bytes.LastIndexByte(text, '\n'); end >= 0 {
		text = text[:end]
	}
	var log Log
	for line := range bytes.Lines(text) {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		log = append(log, e)
	}
	return log, nil
}

// Between are the requests that came in from one time until another.
func (l Log) Between(from, until time.Time) Log {
	return l.where(func(e *Event) bool { return !e.Received.Before(from) && e.Received.Before(until) })
}

// Of is the part about one namespace.
func (l Log) Of(namespace string) Log {
	return l.where(func(e *Event) bool { return e.ObjectRef.Namespace == namespace })
}

// By are the requests of a user that have been answered; a watch counts once, when it ends or begins.
func (l Log) By(name string) Log {
	return l.where(func(e *Event) bool { return e.Who() == name })
}

// Requests counts each request once: long ones when they begin, the others when they end.
func (l Log) Requests() int { return len(l.Once()) }

// Once has each request once: long ones when they begin, the others when they end.
func (l Log) Once() Log {
	return l.where(func(e *Event) bool { return (e.Stage == "ResponseStarted") == (e.Verb == "watch") })
}

// MostWatches is how many watches were open at a time.
func (l Log) MostWatches() int {
	open, most := 0, 0
	for _, e := range l {
		if e.Verb != "watch" {
			continue
		}
		switch e.Stage {
		case "ResponseStarted":
			open++
		case "ResponseComplete":
			open--
		}
		most = max(most, open)
	}
	return most
}

func (l Log) where(is func(*Event) bool) Log {
	var out Log
	for i := range l {
		if is(&l[i]) {
			out = append(out, l[i])
		}
	}
	return out
}
