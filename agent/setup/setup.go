// Package setup puts an agent together from its configuration.
package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/agent/watch"
)

// Paths of a host. The zero value of a field stands for its usual place.
type Paths struct {
	State     string // /var/lib/refit
	Run       string // /run/refit
	Etc       string // /etc/refit
	MachineID string // /etc/machine-id
	Root      string // /
	BootID    string // /proc/sys/kernel/random/boot_id
}

// PathsUnder are the usual places below a directory that is the host's root.
func PathsUnder(root string) Paths {
	p := Paths{Root: root}.withDefaults()
	for _, path := range []*string{&p.State, &p.Run, &p.Etc, &p.MachineID} {
		*path = filepath.Join(root, *path)
	}
	return p
}

func (p Paths) withDefaults() Paths {
	set := func(path *string, value string) {
		if *path == "" {
			*path = value
		}
	}
	set(&p.State, store.DefaultDir)
	set(&p.Run, "/run/refit")
	set(&p.Etc, filepath.Dir(agent.DefaultConfigFile))
	set(&p.MachineID, "/etc/machine-id")
	set(&p.Root, "/")
	set(&p.BootID, "/proc/sys/kernel/random/boot_id")
	return p
}

// Run puts an agent together and works until the context ends.
func Run(ctx context.Context, config agent.Config, paths Paths) error {
	paths = paths.withDefaults()
	return run(ctx, config, paths, func(ctx context.Context) (*session, error) { return connect(ctx, config, paths) })
}

func run(ctx context.Context, config agent.Config, paths Paths, begin func(context.Context) (*session, error)) error {
	release, err := alone(ctx, paths)
	if err != nil {
		return err
	}
	defer release()
	session, err := begin(ctx)
	if err != nil || session == nil {
		return err
	}
	units := systemd.New()
	defer units.Close()
	state := store.New(paths.State)
	if err := state.MakeDirs(); err != nil {
		return err
	}
	files, err := fileEvents(ctx, state, paths)
	if err != nil {
		return err
	}
	program, err := ExecutorPath(config)
	if err != nil {
		return err
	}
	deps := agent.Deps{
		API: session.client, Heartbeat: session.client, Store: state, Files: files, UnitEvents: systemd.Changes(ctx, agent.Units...),
		Executor: &launch.Executor{Units: units, Program: program, RunDir: paths.Run},
		Hold:     agent.HoldFile(filepath.Join(paths.Etc, "hold")), PackageLock: agent.PackageLock(paths.Root),
		LockReleased: agent.LockReleased(paths.Root),
	}
	well := running(ctx, paths.Run, "/proc/self/exe")
	deps.Reported = well.heard
	if deps.MachineID, err = readID(paths.MachineID); err != nil {
		return err
	}
	if deps.BootID, err = readID(paths.BootID); err != nil {
		return err
	}
	return runAll(ctx, agent.New(deps), session, well)
}

// fileEvents watches the directories of the host. That of the hold file is made when it
// is missing: a directory that comes later is not watched, and the owner's veto comes without warning.
func fileEvents(ctx context.Context, state *store.Store, paths Paths) (<-chan string, error) {
	if err := os.MkdirAll(paths.Etc, 0o755); err != nil {
		logr.FromContextOrDiscard(ctx).Info("Cannot make the directory of the hold file, a new hold is seen late", "reason", err.Error())
	}
	return agent.FileEvents(ctx, append([]string{state.JournalDir(), paths.Etc}, agent.HostDirs(paths.Root)...)...)
}

// executorRetry is how often an executor that does not answer is asked again by an agent in the middle of an operation.
const executorRetry = 10 * time.Second

// runAll runs what follows the Machine, what keeps the token fresh, and the agent.
func runAll(ctx context.Context, a *agent.Agent, s *session, well *wellness) error {
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { (&watch.Watcher{Client: s.client, Busy: a.Busy, Failed: well.heard}).Run(ctx, a.Events()) })
	if open, err := a.Store.Open(); err != nil || len(open) > 0 { // which may be the one that has brought this agent
		beside.Go(func() { well.tryExecutor(ctx, a.Executor.Facts, executorRetry) })
	}
	if s.renewer != nil {
		beside.Go(func() { s.renewer.Run(ctx) })
	}
	err := a.Run(ctx)
	stop()
	beside.Wait()
	return err
}

// ExecutorPath is where refit-executor is: as configured, else beside this program.
func ExecutorPath(config agent.Config) (string, error) {
	path := config.Executor
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("finding refit-executor: %w", err)
		}
		path = filepath.Join(filepath.Dir(self), "refit-executor")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("finding refit-executor: %w: install it beside refit-agent, or set executor in the agent's configuration", err)
	}
	return path, nil
}

func readID(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the identity of this host: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
