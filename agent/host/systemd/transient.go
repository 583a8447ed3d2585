package systemd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// TransientUnit is a service that exists until it has ended and is released, or
// until the host boots. It belongs to systemd, not to its starter: it outlives the
// agent, the kubelet and the runtime, and is found again by its name.
type TransientUnit struct {
	Name        string // with or without .service
	Description string
	Argv        []string // Argv[0] is an absolute path
	Environment []string // NAME=value
	// StopTimeout is the time between SIGTERM to the main process and SIGKILL to all; 0 means five minutes.
	StopTimeout time.Duration
	// RuntimeLimit ends the unit after this time; 0 means no limit.
	RuntimeLimit time.Duration
}

// ErrRunning says that a unit of this name already runs; wait for it instead.
var ErrRunning = errors.New("the unit already runs")

// ServiceName is the unit name with its suffix.
func ServiceName(name string) string {
	if strings.HasSuffix(name, ".service") {
		return name
	}
	return name + ".service"
}

func (u TransientUnit) check() error {
	if u.Name == "" || strings.ContainsAny(u.Name, "/ \n") {
		return fmt.Errorf("transient unit %q: the name must be a unit name without slashes or spaces", u.Name)
	}
	if len(u.Argv) == 0 || !filepath.IsAbs(u.Argv[0]) {
		return fmt.Errorf("transient unit %s: the program must be an absolute path, got %q", u.Name, u.Argv)
	}
	return nil
}

func (u TransientUnit) properties() []sd.Property {
	stop := u.StopTimeout
	if stop == 0 {
		stop = 5 * time.Minute
	}
	properties := []sd.Property{
		sd.PropDescription(u.Description),
		sd.PropType("exec"), // the job fails when the program cannot be executed
		// false: an exit code other than 0 is a failure (the bus means "ignore failure" by this flag).
		sd.PropExecStart(u.Argv, false),
		sd.PropRemainAfterExit(true), // keeps the result readable until Release
		property("KillMode", "mixed"),
		property("TimeoutStopUSec", uint64(stop.Microseconds())),
		property("SyslogIdentifier", filepath.Base(u.Argv[0])),
	}
	if len(u.Environment) > 0 {
		properties = append(properties, property("Environment", u.Environment))
	}
	if u.RuntimeLimit > 0 {
		properties = append(properties, property("RuntimeMaxUSec", uint64(u.RuntimeLimit.Microseconds())))
	}
	return properties
}

func property(name string, value any) sd.Property {
	return sd.Property{Name: name, Value: dbus.MakeVariant(value)}
}

// StartTransient starts the unit and returns once its program runs. A unit of the
// same name that has ended is replaced; one that runs is left alone and ErrRunning
// returned: two of a name never run at once.
func (m *Manager) StartTransient(ctx context.Context, u TransientUnit) error {
	if err := u.check(); err != nil {
		return err
	}
	unit := ServiceName(u.Name)
	status, err := m.Status(ctx, unit)
	if err != nil {
		return err
	}
	if status.Running() {
		return fmt.Errorf("starting transient unit %s: %w", unit, ErrRunning)
	}
	if status.Exists() {
		if err := m.Release(ctx, unit); err != nil {
			return err
		}
	}
	// Between the look and the start somebody may have started it: mode fail and the manager's own check decide.
	return m.job(ctx, "starting transient unit", unit, u.start)
}

func (u TransientUnit) start(c *sd.Conn, ctx context.Context, name, _ string, ch chan<- string) (int, error) {
	id, err := c.StartTransientUnitContext(ctx, name, "fail", u.properties(), ch)
	var fault dbus.Error
	if errors.As(err, &fault) && strings.HasSuffix(fault.Name, ".UnitExists") {
		return 0, fmt.Errorf("%w: %w", ErrRunning, err)
	}
	return id, err
}

// Release forgets a transient unit that has ended, successful or not. A unit that is not there is fine.
func (m *Manager) Release(ctx context.Context, name string) error {
	unit := ServiceName(name)
	status, err := m.Status(ctx, unit)
	if err != nil {
		return err
	}
	if status.Running() {
		return fmt.Errorf("releasing transient unit %s: %w", unit, ErrRunning)
	}
	if status.ActiveState == "active" {
		if err := m.Stop(ctx, unit); err != nil {
			return err
		}
	}
	conn, err := m.connect(ctx)
	if err != nil {
		return err
	}
	if err := conn.ResetFailedUnitContext(ctx, unit); err != nil && !isNoSuchUnit(err) {
		return fmt.Errorf("releasing transient unit %s: %w", unit, err)
	}
	return nil
}
