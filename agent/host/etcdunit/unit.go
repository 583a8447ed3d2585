// Package etcdunit finds an etcd that runs as a unit of its host, and what it was started with. It
// asks no member: the client of etcd is large, and not every program that looks at hosts has it.
package etcdunit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Units tells the state of units.
type Units interface {
	Status(ctx context.Context, unit string) (systemd.Status, error)
}

// listensByDefault is where etcd listens for clients when it is told nothing.
const listensByDefault = "http://localhost:2379"

// Wanted says that a unit of etcd is more than a file that is left: it runs, or a boot starts it.
func Wanted(s systemd.Status) bool {
	return s.Exists() && (s.MainPID != 0 || s.ActiveState == "active" || s.FileState == "enabled" || s.FileState == "enabled-runtime")
}

// Finder finds an etcd that runs as a unit of the host under root. What its process was started
// with counts, not what the unit's files say by now.
func Finder(units Units, root string) func(ctx context.Context) (func(string) string, error) {
	return func(ctx context.Context) (func(string) string, error) {
		status, err := units.Status(ctx, upgrade.UnitEtcd)
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", upgrade.UnitEtcd, err)
		}
		if !Wanted(status) {
			return nil, nil
		}
		if status.MainPID == 0 {
			return nil, fmt.Errorf("%s does not run (%s): see why, systemctl status %s", upgrade.UnitEtcd, status.ActiveState, upgrade.UnitEtcd)
		}
		return OfProcess("/proc", root, status.MainPID)
	}
}

// OfProcess reads what a process of etcd was started with.
func OfProcess(proc, root string, pid uint32) (func(string) string, error) {
	dir := filepath.Join(proc, strconv.Itoa(int(pid)))
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return nil, fmt.Errorf("reading the flags of etcd: %w", err)
	}
	environ, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return nil, fmt.Errorf("reading the environment of etcd: %w", err)
	}
	given := settings{flags: flagsIn(nulls(line)), environment: environmentIn(nulls(environ))}
	file := given.get("config-file")
	if file == "" {
		return given.orDefault, nil
	}
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration file of etcd: %w", err)
	}
	if given.file, err = fileIn(content); err != nil {
		return nil, fmt.Errorf("reading the configuration file of etcd, %s: %w", file, err)
	}
	return given.orDefault, nil
}

// settings are what an etcd was started with. With a file, etcd reads neither flags nor environment.
type settings struct{ flags, environment, file map[string]string }

func (s settings) get(name string) string {
	if s.file != nil {
		return s.file[name]
	}
	if value, given := s.flags[name]; given {
		return value
	}
	return s.environment["ETCD_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))]
}

func (s settings) orDefault(name string) string {
	if value := s.get(name); value != "" || name != "listen-client-urls" {
		return value
	}
	return listensByDefault
}

// nulls takes apart what the kernel ends each word of with a zero byte.
func nulls(text []byte) []string {
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
}

// flagsIn are the flags of a command line, as the flags of Go are written: with one dash or two,
// and their value in the same word or in the next one.
func flagsIn(words []string) map[string]string {
	flags := map[string]string{}
	for i := 1; i < len(words); i++ {
		name, found := strings.CutPrefix(words[i], "-")
		if !found {
			continue
		}
		name, value, same := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !same && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			value = words[i]
		}
		flags[name] = value
	}
	return flags
}

func environmentIn(words []string) map[string]string {
	out := map[string]string{}
	for _, word := range words {
		if name, value, found := strings.Cut(word, "="); found && strings.HasPrefix(name, "ETCD_") {
			out[name] = value
		}
	}
	return out
}

// fileIn are the settings of a configuration file under the names of their flags: those for
// clients are in a section of their own there.
func fileIn(content []byte) (map[string]string, error) {
	var file map[string]any
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, errors.New("it is no YAML")
	}
	out := map[string]string{}
	add := func(section map[string]any) {
		for name, value := range section {
			switch v := value.(type) {
			case string:
				out[name] = v
			case bool:
				out[name] = strconv.FormatBool(v)
			}
		}
	}
	add(file)
	if section, ok := file["client-transport-security"].(map[string]any); ok {
		for _, name := range []string{"cert-file", "key-file", "trusted-ca-file", "client-cert-auth"} {
			delete(out, name)
		}
		add(section)
	}
	return out, nil
}
