package systemd

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

const (
	busName    = "org.freedesktop.systemd1"
	busPath    = "/org/freedesktop/systemd1"
	managerIfc = "org.freedesktop.systemd1.Manager"
)

// ErrGone says that a unit is not known to systemd: it never ran in this boot, or was released.
var ErrGone = errors.New("the unit is not known to systemd")

// Exit is how a unit ended.
type Exit struct {
	Result string // success, exit-code, signal, core-dump, timeout, oom-kill, …
	Code   int    // exit code; -1 when a signal ended it
	Signal int    // 0 when it exited by itself
}

// Success says whether it ended with exit code 0.
func (e Exit) Success() bool { return e.Result == "success" && e.Code == 0 }

// Wait returns when the unit has ended, told by a signal of the bus. It may be called
// at any time, by another process than the one that started the unit. An error says
// nothing about the unit's outcome.
func (m *Manager) Wait(ctx context.Context, name string) (Exit, error) {
	unit := ServiceName(name)
	changes, stop, err := watch(ctx, unit)
	if err != nil {
		return Exit{}, fmt.Errorf("waiting for unit %s: %w", unit, err)
	}
	defer stop()
	for {
		// Look after the watch is set up, so that no end falls between the two.
		status, err := m.Status(ctx, unit)
		if err != nil {
			return Exit{}, err
		}
		if !status.Exists() {
			return Exit{}, fmt.Errorf("waiting for unit %s: %w", unit, ErrGone)
		}
		if !status.Running() {
			return exitOf(status), nil
		}
		select {
		case <-ctx.Done():
			return Exit{}, fmt.Errorf("waiting for unit %s: %w", unit, context.Cause(ctx))
		case _, open := <-changes:
			if !open {
				return Exit{}, fmt.Errorf("waiting for unit %s: the system bus went away", unit)
			}
		}
	}
}

func exitOf(s Status) Exit {
	exit := Exit{Result: s.Result, Code: s.ExitStatus}
	if s.ExitCode > 1 { // killed or dumped: the status is the signal
		exit.Code, exit.Signal = -1, s.ExitStatus
	}
	return exit
}

// watch subscribes to the changes of units on a connection of its own, so that
// nothing is sent to us while nobody waits.
func watch(ctx context.Context, units ...string) (<-chan *dbus.Signal, func(), error) {
	conn, err := dbus.ConnectSystemBus(dbus.WithContext(context.WithoutCancel(ctx)))
	if err != nil {
		return nil, nil, unavailable(err)
	}
	stop := func() { _ = conn.Close() }
	for _, unit := range units {
		if err := match(ctx, conn, unit); err != nil {
			stop()
			return nil, nil, err
		}
	}
	changes := make(chan *dbus.Signal, 64)
	conn.Signal(changes)
	if err := conn.Object(busName, busPath).CallWithContext(ctx, managerIfc+".Subscribe", 0).Err; err != nil {
		stop()
		return nil, nil, fmt.Errorf("subscribing to the service manager: %w", err)
	}
	return changes, stop, nil
}

func match(ctx context.Context, conn *dbus.Conn, unit string) error {
	for _, options := range [][]dbus.MatchOption{
		{dbus.WithMatchObjectPath(unitPath(unit)), dbus.WithMatchInterface("org.freedesktop.DBus.Properties"), dbus.WithMatchMember("PropertiesChanged")},
		{dbus.WithMatchObjectPath(busPath), dbus.WithMatchInterface(managerIfc), dbus.WithMatchMember("UnitRemoved"), dbus.WithMatchArg(0, unit)},
	} {
		if err := conn.AddMatchSignalContext(ctx, options...); err != nil {
			return fmt.Errorf("subscribing to unit %s: %w", unit, err)
		}
	}
	return nil
}
