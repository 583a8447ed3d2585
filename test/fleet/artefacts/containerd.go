package artefacts

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

var containerdCommands = []string{"containerd", "containerd-shim-runc-v2", "ctr"}

func containerdEntry(version string) string { return "containerd/" + version }

func (m *maker) containerdItems() ([]item, error) {
	var items []item
	for _, v := range m.Containerd {
		items = append(items, item{
			name: "containerd " + v, entry: containerdEntry(v), eta: compiling(time.Minute),
			make: func(ctx context.Context, w workplace) error { return makeContainerd(ctx, w, v) },
		})
	}
	return items, nil
}

func makeContainerd(ctx context.Context, w workplace, version string) error {
	module := containerdModule(version)
	b := goBuild{
		module: module, version: version, commands: map[string]string{},
		ldflags: []string{
			"-s", "-w", "-X", module + "/version.Version=" + version, "-X", module + "/version.Package=" + module,
			"-X", module + "/version.Revision=refit-fleet",
		},
	}
	for _, name := range containerdCommands {
		b.commands[name] = module + "/cmd/" + name
	}
	if err := b.run(ctx, w); err != nil {
		return err
	}
	for name, flag := range map[string]string{"containerd": "--version", "ctr": "--version", "containerd-shim-runc-v2": "-v"} {
		if err := checkSays(ctx, []string{filepath.Join(w.dir, "bin", name), flag}, version); err != nil {
			return fmt.Errorf("checking what was built: %w", err)
		}
	}
	return nil
}

// containerdModule is the path of the module a release belongs to: from major version 2 on it is part of the path.
func containerdModule(version string) string {
	const path = "github.com/containerd/containerd"
	major, _, _ := strings.Cut(version, ".")
	if major == "v0" || major == "v1" {
		return path
	}
	return path + "/" + major
}
