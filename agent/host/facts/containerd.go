package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// containerdConfigPath is where containerd reads its configuration unless it is told otherwise.
const containerdConfigPath = "/etc/containerd/config.toml"

// containerdConfig asks containerd's program for its effective configuration, imports
// and all: since 2.0 the daemon itself no longer tells which image it starts
// sandboxes from. The version is that of the file, since the program writes its own.
func (g *gathering) containerdConfig(ctx context.Context, program string, pid uint32, r *upgrade.RuntimeFacts) error {
	if r.Name != "containerd" {
		return nil
	}
	config := &upgrade.RuntimeConfigFacts{Path: configPathOf(pid)}
	data, err := os.ReadFile(g.path(config.Path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading containerd's configuration: %w", err)
	}
	config.Version = configVersionIn(string(data))
	result, err := g.Runner.Run(ctx, command.Command{Argv: []string{program, "--config", config.Path, "config", "dump"}})
	if err != nil {
		return fmt.Errorf("asking %s for its configuration: %w", program, err)
	}
	config.Settings = settingsIn(result.Stdout)
	r.Configuration = config
	if r.SandboxImage == "" {
		r.SandboxImage = sandboxImageIn(result.Stdout)
	}
	return nil
}

// configPathOf is the configuration that a running containerd was started with.
func configPathOf(pid uint32) string {
	if pid == 0 {
		return containerdConfigPath
	}
	flags, err := flagsOf(pid)
	if err != nil {
		return containerdConfigPath
	}
	return configPathIn(flags)
}

func configPathIn(flags []string) string {
	for i, flag := range flags {
		if path, ok := strings.CutPrefix(flag, "--config="); ok {
			return path
		}
		if (flag == "--config" || flag == "-c") && i+1 < len(flags) {
			return flags[i+1]
		}
	}
	return containerdConfigPath
}

var configVersion = regexp.MustCompile(`^version\s*=\s*([0-9]{1,3})\b`)

// configVersionIn reads the one setting of a file that comes before any table.
func configVersionIn(content string) int {
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			break
		}
		if m := configVersion.FindStringSubmatch(line); m != nil {
			version, _ := strconv.Atoi(m[1])
			return version
		}
	}
	return 0
}

// watchedSettings are those that not every release of containerd takes.
var watchedSettings = []string{
	"runtime_type", "snapshotter", "systemd_cgroup", "runtime_engine", "runtime_root", "disable_cgroup", "CriuPath", "plugin_dir",
}

var (
	settingLine   = regexp.MustCompile(`^([A-Za-z_]+) = ["']?([^"']*)["']?$`)
	registryTable = regexp.MustCompile(`\.registry\.(?:mirrors|configs|auths)\.`)
)

// settingsIn reads the watched settings out of a configuration that containerd itself
// has written, so its form is fixed: one setting per line, under its table's name.
// Registries are named without what is in their tables, which may be a password.
func settingsIn(dump string) map[string]string {
	found := map[string]string{}
	table := ""
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = strings.ReplaceAll(strings.Trim(line, "[]"), "'", `"`)
			if registryTable.MatchString(table) {
				found[table] = ""
			}
			continue
		}
		m := settingLine.FindStringSubmatch(line)
		if m == nil || m[2] == "" || m[2] == "false" || !slices.Contains(watchedSettings, m[1]) {
			continue
		}
		found[strings.TrimPrefix(table+"."+m[1], ".")] = m[2]
	}
	return found
}

var sandboxSetting = regexp.MustCompile(`^\s*(?:sandbox|sandbox_image) = ["']([^"']+)["']`)

// sandboxImageIn reads the image that sandboxes are started from out of such a configuration.
func sandboxImageIn(dump string) string {
	table := ""
	for line := range strings.Lines(dump) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "[") {
			table = strings.Trim(trimmed, "[]")
		}
		if m := sandboxSetting.FindStringSubmatch(line); m != nil && strings.Contains(table, "cri") {
			return m[1]
		}
	}
	return ""
}
