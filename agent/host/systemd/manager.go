// Package systemd talks to the host's service manager over the system bus. The agent
// links it, so it stays small: no polling, one connection that is opened on first
// use, and one more for whoever waits for signals of units.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// ErrUnavailable says that there is no service manager to talk to.
var ErrUnavailable = errors.New("systemd does not answer on the system bus")

// Manager is the host's service manager. The zero value is ready for use and safe
// for several goroutines.
type Manager struct {
	mu   sync.Mutex
	conn *sd.Conn
}

// New returns a Manager that connects when it is first used, and again when the bus was restarted.
func New() *Manager { return &Manager{} }

// Close ends the connection.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
}

func (m *Manager) connect(ctx context.Context) (*sd.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && m.conn.Connected() {
		return m.conn, nil
	}
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
	// The connection outlives the call that opened it: its context must not end with ctx.
	conn, err := sd.NewSystemConnectionContext(context.WithoutCancel(ctx))
	if err != nil {
		return nil, unavailable(err)
	}
	m.conn = conn
	return conn, nil
}

// sockets of the system bus, where the library looks for them as well.
var sockets = []string{"/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"}

func unavailable(err error) error {
	var network *net.OpError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &network) || noBus(sockets) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("connecting to the system bus: %w", err)
}

// noBus says that there is no bus to connect to. The library says so too, but in words
// only, and not as an error that can be told from others.
func noBus(sockets []string) bool {
	if os.Getenv("DBUS_SYSTEM_BUS_ADDRESS") != "" {
		return false
	}
	for _, socket := range sockets {
		if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// noManager says that the bus is there and nobody on it is systemd, as in a container.
func noManager(err error) bool {
	var fault dbus.Error
	return errors.As(err, &fault) && slices.Contains(absences, fault.Name)
}

// absences are the bus's own answers for a name that nobody has and nobody can be started for.
var absences = []string{
	"org.freedesktop.DBus.Error.ServiceUnknown",
	"org.freedesktop.DBus.Error.NameHasNoOwner",
	"org.freedesktop.DBus.Error.Spawn.ServiceNotFound",
}

// Restart restarts a unit and waits until systemd calls it started.
func (m *Manager) Restart(ctx context.Context, unit string) error {
	return m.job(ctx, "restarting", unit, (*sd.Conn).RestartUnitContext)
}

// Start starts a unit and waits until systemd calls it started; a running one is left alone.
func (m *Manager) Start(ctx context.Context, unit string) error {
	return m.job(ctx, "starting", unit, (*sd.Conn).StartUnitContext)
}

// Stop stops a unit and waits until it has ended.
func (m *Manager) Stop(ctx context.Context, unit string) error {
	return m.job(ctx, "stopping", unit, (*sd.Conn).StopUnitContext)
}

// Reload reads the unit files anew.
func (m *Manager) Reload(ctx context.Context) error {
	conn, err := m.connect(ctx)
	if err != nil {
		return err
	}
	if err := conn.ReloadContext(ctx); err != nil {
		return fmt.Errorf("reloading the unit files: %w", err)
	}
	return nil
}

// Active says whether a unit is active; one that does not exist is not.
func (m *Manager) Active(ctx context.Context, unit string) (bool, error) {
	status, err := m.Status(ctx, unit)
	return status.ActiveState == "active", err
}

// startJob is the shape of the calls of go-systemd that queue a job.
type startJob func(c *sd.Conn, ctx context.Context, name, mode string, ch chan<- string) (int, error)

// JobError is a job of systemd that did not end with "done".
type JobError struct {
	Verb   string
	Unit   string
	Result string // failed, canceled, timeout, dependency, skipped
	Status Status // of the unit afterwards, as far as it could be read
}

// Error implements error.
func (e *JobError) Error() string {
	s := e.Status
	text := fmt.Sprintf("%s %s: job %s; the unit is %s (%s)", e.Verb, e.Unit, e.Result, s.ActiveState, s.SubState)
	if s.Result != "" && s.Result != "success" {
		text += fmt.Sprintf(", result %s, exit status %d", s.Result, s.ExitStatus)
	}
	return text + "; see: journalctl -u " + e.Unit
}

func (m *Manager) job(ctx context.Context, verb, unit string, start startJob) error {
	conn, err := m.connect(ctx)
	if err != nil {
		return err
	}
	done := make(chan string, 1) // buffered: go-systemd sends while it holds its lock
	if _, err := start(conn, ctx, unit, "replace", done); err != nil {
		return fmt.Errorf("%s %s: %w", verb, unit, err)
	}
	result, err := await(ctx, conn, done)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, unit, err)
	}
	if result == "done" {
		return nil
	}
	status, _ := m.Status(ctx, unit) // best effort: only makes the message better
	return &JobError{Verb: verb, Unit: unit, Result: result, Status: status}
}

// await returns the result of a job. A bus that went away means that the outcome is
// unknown: neither success nor failure, the caller has to look.
func await(ctx context.Context, conn *sd.Conn, done <-chan string) (string, error) {
	look := time.NewTicker(5 * time.Second) // runs only while a job is pending
	defer look.Stop()
	for {
		select {
		case result := <-done:
			return result, nil
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for the job: %w", context.Cause(ctx))
		case <-look.C:
			if !conn.Connected() {
				return "", errors.New("waiting for the job: the system bus went away, the outcome is unknown")
			}
		}
	}
}

// isNoSuchUnit tells a unit that is not loaded from other faults.
func isNoSuchUnit(err error) bool {
	var fault dbus.Error
	return errors.As(err, &fault) && strings.HasSuffix(fault.Name, ".NoSuchUnit")
}
