package systemd

import (
	"context"
	"fmt"
	"time"
)

// Status is what systemd says of a service.
type Status struct {
	Unit        string
	LoadState   string // loaded, not-found, masked, …
	ActiveState string // active, activating, inactive, failed, …
	SubState    string // running, exited, dead, auto-restart, …
	Result      string // success, exit-code, signal, timeout, oom-kill, …
	MainPID     uint32
	StartTime   *time.Time // of the main process
	Restarts    uint32     // by Restart=, since somebody started it
	// ExitCode says how the main process ended (1 exited, 2 killed, 3 dumped; 0 not
	// yet), ExitStatus its exit status or the signal.
	ExitCode   int
	ExitStatus int
	FileState  string // enabled, disabled, static, masked, …
	// Fragment and DropIns are the files that make up the unit.
	Fragment string
	DropIns  []string
}

// Exists says whether the unit is known to systemd.
func (s Status) Exists() bool { return s.LoadState != "" && s.LoadState != "not-found" }

// Running says whether the unit has a process, is starting or is stopping. One that is
// stopping counts: its main process may be at work, and once that has ended systemd kills
// the others (KillMode=mixed) and only then calls the unit inactive or failed.
func (s Status) Running() bool {
	switch s.ActiveState {
	case "activating", "deactivating", "reloading":
		return true
	case "active":
		return s.SubState != "exited"
	}
	return false
}

// Alive says whether the unit's main process is there, or is about to be. A unit that is
// stopping goes on without it until its last process has ended.
func (s Status) Alive() bool {
	return s.Running() && (s.MainPID != 0 || s.ActiveState == "activating")
}

// Status reads a service unit. A unit that does not exist is no error: LoadState says not-found.
func (m *Manager) Status(ctx context.Context, unit string) (Status, error) {
	conn, err := m.connect(ctx)
	if err != nil {
		return Status{Unit: unit}, err
	}
	properties, err := conn.GetAllPropertiesContext(ctx, unit)
	if isNoSuchUnit(err) {
		return Status{Unit: unit, LoadState: "not-found", ActiveState: "inactive", SubState: "dead"}, nil
	}
	if noManager(err) {
		return Status{Unit: unit}, fmt.Errorf("reading unit %s: %w: %w", unit, ErrUnavailable, err)
	}
	if err != nil {
		return Status{Unit: unit}, fmt.Errorf("reading unit %s: %w", unit, err)
	}
	return statusFrom(unit, properties), nil
}

func statusFrom(unit string, p map[string]any) Status {
	s := Status{
		Unit:        unit,
		LoadState:   text(p, "LoadState"),
		ActiveState: text(p, "ActiveState"),
		SubState:    text(p, "SubState"),
		Result:      text(p, "Result"),
		Fragment:    text(p, "FragmentPath"),
		FileState:   text(p, "UnitFileState"),
	}
	s.MainPID, _ = p["MainPID"].(uint32)
	s.Restarts, _ = p["NRestarts"].(uint32)
	s.DropIns, _ = p["DropInPaths"].([]string)
	if code, ok := p["ExecMainCode"].(int32); ok {
		s.ExitCode = int(code)
	}
	if status, ok := p["ExecMainStatus"].(int32); ok {
		s.ExitStatus = int(status)
	}
	if micros, ok := p["ExecMainStartTimestamp"].(uint64); ok && micros > 0 && s.MainPID != 0 {
		start := time.UnixMicro(int64(micros)).UTC()
		s.StartTime = &start
	}
	return s
}

func text(p map[string]any, key string) string {
	s, _ := p[key].(string)
	return s
}
