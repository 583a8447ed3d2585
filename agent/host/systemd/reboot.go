package systemd

import (
	"context"
	"fmt"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Reboot queues the start of reboot.target, as `systemctl reboot` does: services are
// stopped in order, and no other job can push it aside. It returns once the job is
// queued; the caller is stopped with all the others.
func (m *Manager) Reboot(ctx context.Context) error {
	conn, err := m.connect(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.StartUnitContext(ctx, "reboot.target", "replace-irreversibly", nil); err != nil {
		return fmt.Errorf("asking systemd for a reboot: %w", err)
	}
	return nil
}

// NotifyReady tells systemd that a Type=notify service has started, which lets units
// ordered after it start too. Outside of such a service it does nothing.
func NotifyReady() error {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return fmt.Errorf("telling systemd that the service has started: %w", err)
	}
	return nil
}
