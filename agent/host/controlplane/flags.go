package controlplane

import (
	"errors"
	"io/fs"
)

// Flags looks up flags of a component's static pod manifest; there is false where this host has no such manifest.
func (c *ControlPlane) Flags(component string) (flag func(name string) string, there bool, err error) {
	m, err := c.manifest(component)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	return m.flag, true, nil
}
