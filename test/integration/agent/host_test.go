package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	oldVersion = "v1.36.3"
	newVersion = "v1.37.2"
)

// host is a machine with systemd in memory and its state directory on disk. It
// outlives agents: a test stops one and starts the next on the same host.
type host struct {
	name      string
	machineID string
	bootID    string
	state     *store.Store

	mu         sync.Mutex
	kubelet    string
	apiServer  string                   // "": no control plane
	running    map[string]chan struct{} // units that work on an operation
	runs       map[string]int           // how often an operation was begun from nothing
	starts     map[string]int
	factsCalls int
	hold       *upgrade.HoldFacts
	lock       *upgrade.LockFacts
	factsErr   error
	candErr    error
	findings   []upgrade.Finding
	refuse     bool
	// step is received from before each step; nil runs to the end at once.
	step chan struct{}
	// beforeStart runs when the unit is about to be started; its error keeps it from starting.
	beforeStart func() error
	// disk is the journal's.
	disk journal.FS
	// fail ends operations with this reason.
	fail string
}

func newHost(dir, name string) *host {
	return &host{
		name: name, machineID: "machine-" + name, bootID: "boot-1", state: store.New(dir), kubelet: oldVersion,
		disk: journal.Disk{}, running: map[string]chan struct{}{}, runs: map[string]int{}, starts: map[string]int{},
	}
}

func deb(version string) string { return strings.TrimPrefix(version, "v") + "-1.1" }

func (h *host) Facts(context.Context, []string) (upgrade.Facts, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.factsCalls++
	if h.factsErr != nil {
		return upgrade.Facts{}, h.factsErr
	}
	v, _ := upgrade.ParseKubernetes(h.kubelet)
	f := upgrade.Facts{
		Host:    upgrade.HostFacts{BootID: h.bootID, MachineID: h.machineID},
		OS:      upgrade.OSFacts{ID: "debian", VersionID: "12", Family: "apt", PrettyName: "Debian GNU/Linux 12 (bookworm)"},
		Kubelet: &upgrade.ComponentFacts{Running: h.kubelet, Installed: h.kubelet, Unit: "kubelet.service", Active: true},
		Kubeadm: &upgrade.ComponentFacts{Installed: h.kubelet},
		Runtime: &upgrade.RuntimeFacts{Name: "containerd", Running: "1.7.28", Installed: "1.7.28", Unit: "containerd.service", Ready: true},
		Node:    &upgrade.NodeFacts{Name: h.name},
		Packages: upgrade.PackageFacts{Manager: "apt", Sources: []upgrade.SourceFacts{{
			File: "/etc/apt/sources.list.d/kubernetes.list", URI: "https://pkgs.example/core:/stable:/" + v.Minor() + "/deb/",
			Suites: []string{"/"}, SignedBy: "/etc/apt/keyrings/kubernetes.gpg", Provides: []string{"kubeadm", "kubectl", "kubelet"},
		}}},
	}
	for _, name := range []string{"kubeadm", "kubectl", "kubelet"} {
		f.Packages.Installed = append(f.Packages.Installed, upgrade.InstalledPackage{Name: name, Version: deb(h.kubelet), State: "installed"})
	}
	if h.apiServer != "" {
		f.Control = &upgrade.ControlFacts{APIServer: h.apiServer, ControllerManager: h.apiServer, Scheduler: h.apiServer}
	}
	return f, nil
}

func (h *host) Candidates(_ context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.candErr != nil {
		return nil, h.candErr
	}
	var out []upgrade.Candidate
	for _, name := range []string{"kubeadm", "kubectl", "kubelet"} {
		for _, v := range []string{oldVersion, newVersion} {
			parsed, _ := upgrade.ParseKubernetes(v)
			for _, source := range request.Sources {
				if !strings.Contains(source.URI, parsed.Minor()) {
					continue
				}
				out = append(out, upgrade.Candidate{
					Name: name, Version: deb(v), Source: source.URI, Path: "./" + name + ".deb", SHA256: name + "@" + v, Size: 1,
				})
			}
		}
	}
	return out, nil
}

func (h *host) Stage(context.Context, upgrade.Plan) (launch.StageResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return launch.StageResult{Findings: h.findings, Refused: h.refuse, Duration: time.Second}, nil
}

// Start starts the unit: it goes on with an open journal, or begins one.
func (h *host) Start(_ context.Context, id string) error {
	if h.beforeStart != nil {
		if err := h.beforeStart(); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[id] != nil {
		return nil
	}
	h.starts[id]++
	op, err := h.state.Operation(id)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	h.running[id] = done
	go func() {
		defer close(done)
		if err := h.work(op); err != nil {
			panic(fmt.Sprintf("the simulated executor of %s: %v", id, err))
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.running, id)
	}()
	return nil
}

// work is the executor: intent before each step, result after it.
func (h *host) work(op upgrade.Operation) error {
	journals := journal.NewStoreFS(h.state.Dir(), h.disk)
	j, err := journals.Create(op, h.bootID, time.Now)
	if errors.Is(err, journal.ErrExists) {
		if j, err = journals.Load(op.ID, time.Now); err == nil && j.Record().Finished() {
			return nil
		}
	} else {
		h.mu.Lock()
		h.runs[op.ID]++
		h.mu.Unlock()
	}
	if err != nil {
		return err
	}
	for i := j.Record().Next(); i < len(op.Plan.Steps); i++ {
		if h.step != nil {
			<-h.step
		}
		if err := errors.Join(j.Begin(i, h.bootID, journal.Undo{}), j.Done(i, "")); err != nil {
			return err
		}
	}
	if h.fail != "" {
		return j.Fail(h.fail, "the simulated host refuses", true)
	}
	h.mu.Lock()
	h.kubelet = newVersion
	h.mu.Unlock()
	return j.Succeed()
}

func (h *host) Running(_ context.Context, id string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[id] != nil, nil
}

func (h *host) Wait(ctx context.Context, id string) error {
	h.mu.Lock()
	done := h.running[id]
	h.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *host) Release(context.Context, string) error { return nil }

func (h *host) begun(id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[id]
}

func (h *host) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}
