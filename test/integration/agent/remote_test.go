package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// agentEnv makes the test binary an agent: it is the directory with its kubeconfig and
// the socket of its host.
const agentEnv = "REFIT_TEST_AGENT_DIR"

// life is what an agent is told about its host.
type life struct {
	Machine, MachineID, BootID, State string
}

// call is one question to the host.
type call struct {
	Packages []string                 `json:"packages,omitempty"`
	Request  upgrade.CandidateRequest `json:"request"`
	ID       string                   `json:"id,omitempty"`
}

// remote is a host in another process.
type remote struct{ client *http.Client }

func dial(socket string) *remote {
	return &remote{&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}}
}

func (r *remote) ask(ctx context.Context, what string, c call, into any) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://host/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("asking the host for %s: status %d", what, answer.StatusCode)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

func (r *remote) Facts(ctx context.Context, packages []string) (f upgrade.Facts, err error) {
	return f, r.ask(ctx, "facts", call{Packages: packages}, &f)
}

func (r *remote) Candidates(ctx context.Context, request upgrade.CandidateRequest) (c []upgrade.Candidate, err error) {
	return c, r.ask(ctx, "candidates", call{Request: request}, &c)
}

func (r *remote) Stage(ctx context.Context, _ upgrade.Plan) (s launch.StageResult, err error) {
	return s, r.ask(ctx, "stage", call{}, &s)
}

func (r *remote) Start(ctx context.Context, id string) error {
	return r.ask(ctx, "start", call{ID: id}, new(any))
}

func (r *remote) Wait(ctx context.Context, id string) error {
	return r.ask(ctx, "wait", call{ID: id}, new(any))
}

func (r *remote) Release(ctx context.Context, id string) error {
	return r.ask(ctx, "release", call{ID: id}, new(any))
}

func (r *remote) Running(ctx context.Context, id string) (running bool, err error) {
	return running, r.ask(ctx, "running", call{ID: id}, &running)
}

// handler answers for the host; told hears of each question.
func (h *host) handler(told func(what string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c call
		_ = json.NewDecoder(r.Body).Decode(&c)
		what := strings.TrimPrefix(r.URL.Path, "/")
		told(what)
		var out any
		var err error
		switch what {
		case "facts":
			out, err = h.Facts(r.Context(), c.Packages)
		case "candidates":
			out, err = h.Candidates(r.Context(), c.Request)
		case "stage":
			out, err = h.Stage(r.Context(), upgrade.Plan{})
		case "start":
			err = h.Start(r.Context(), c.ID)
		case "wait":
			err = h.Wait(r.Context(), c.ID)
		case "running":
			out, err = h.Running(r.Context(), c.ID)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	})
}

// serve puts the host behind a socket in dir, with what an agent needs beside it.
func (c *cluster) serve(dir string, told func(what string)) {
	c.t.Helper()
	c.srv.WriteKubeconfig(c.t, dir, "system:node:"+c.name, "system:nodes")
	data, err := json.Marshal(life{c.name, c.host.machineID, c.host.bootID, c.host.state.Dir()})
	require.NoError(c.t, err)
	require.NoError(c.t, os.WriteFile(filepath.Join(dir, "life.json"), data, 0o600))
	require.NoError(c.t, c.host.state.MakeDirs())
	listener, err := net.Listen("unix", filepath.Join(dir, "host.sock"))
	require.NoError(c.t, err)
	server := &http.Server{Handler: c.host.handler(told), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	c.t.Cleanup(func() { _ = server.Close() })
}

// spawnAgent starts an agent that is a process of its own.
func spawnAgent(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), agentEnv+"="+dir)
	cmd.Stderr = t.Output()
	require.NoError(t, cmd.Start())
	return cmd
}

// beAgent is the agent's process.
func beAgent(dir string) error {
	var l life
	data, err := os.ReadFile(filepath.Join(dir, "life.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubelet.conf"))
	if err != nil {
		return err
	}
	client, err := watch.NewClient(config, namespace, l.Machine)
	if err != nil {
		return err
	}
	ctx := logr.NewContext(context.Background(), logr.Discard())
	state := store.New(l.State)
	files, err := agent.FileEvents(ctx, state.JournalDir())
	if err != nil {
		return err
	}
	a := agent.New(agent.Deps{
		API: client, Executor: dial(filepath.Join(dir, "host.sock")), Store: state, Files: files,
		MachineID: l.MachineID, BootID: l.BootID, Timing: agent.Timing{Retry: 100 * time.Millisecond, RetryMax: time.Second},
	})
	w := &watch.Watcher{Client: client, Busy: a.Busy, Spread: time.Second}
	go w.Run(ctx, a.Events())
	return a.Run(ctx)
}
