package systemd

import (
	"context"
	"fmt"
)

// Enable makes the boot start a unit, by the links that its [Install] asks for.
func (m *Manager) Enable(ctx context.Context, unit string) error {
	conn, err := m.connect(ctx)
	if err != nil {
		return err
	}
	if _, _, err := conn.EnableUnitFilesContext(ctx, []string{unit}, false, false); err != nil {
		return fmt.Errorf("enabling %s: %w", unit, err)
	}
	return nil
}

// Disable takes the links away again.
func (m *Manager) Disable(ctx context.Context, unit string) error {
	conn, err := m.connect(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.DisableUnitFilesContext(ctx, []string{unit}, false); err != nil && !isNoSuchUnit(err) {
		return fmt.Errorf("disabling %s: %w", unit, err)
	}
	return nil
}
