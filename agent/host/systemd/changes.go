package systemd

import (
	"context"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"
)

// busRetry is the pause before a bus that went away is tried again; it doubles up to busRetryMax.
const (
	busRetry    = 5 * time.Second
	busRetryMax = 5 * time.Minute
)

// Changes sends the name of each of the units when it starts, stops, or gets another
// main process, told by signals of the bus: nothing is asked in between. After the bus
// was away it names them all, since nobody knows what happened meanwhile. Units that do
// not exist yet may be named. The channel is closed when the context ends.
func Changes(ctx context.Context, units ...string) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		pause, missed := busRetry, false
		for ctx.Err() == nil {
			if err := forward(ctx, out, missed, units); err != nil {
				logr.FromContextOrDiscard(ctx).Info("Restarts of units are not seen for now", "units", units, "reason", err.Error(), "next", pause.String())
			} else {
				pause = busRetry
			}
			missed = true
			select {
			case <-ctx.Done():
			case <-time.After(pause):
				pause = min(2*pause, busRetryMax)
			}
		}
	}()
	return out
}

// forward sends changes until the bus goes away or the context ends. An error says that it could not begin.
func forward(ctx context.Context, out chan<- string, missed bool, units []string) error {
	changes, stop, err := watch(ctx, units...)
	if err != nil {
		return err
	}
	defer stop()
	send := func(unit string) {
		select {
		case out <- unit:
		case <-ctx.Done():
		}
	}
	names := map[dbus.ObjectPath]string{}
	for _, unit := range units {
		names[unitPath(unit)] = unit
		if missed {
			send(unit)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case signal, open := <-changes:
			if !open {
				return nil
			}
			if unit := names[signal.Path]; unit != "" && ofProcess(signal) {
				send(unit)
			}
		}
	}
}

func unitPath(unit string) dbus.ObjectPath {
	return dbus.ObjectPath(busPath + "/unit/" + sd.PathBusEscape(unit))
}

// ofProcess leaves out properties that change while a service just runs.
func ofProcess(signal *dbus.Signal) bool {
	if len(signal.Body) < 2 {
		return false
	}
	changed, _ := signal.Body[1].(map[string]dbus.Variant)
	_, state := changed["ActiveState"]
	_, process := changed["MainPID"]
	return state || process
}
