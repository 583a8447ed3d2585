package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// maxConfig bounds a file of the kubelet's configuration; real ones have a few kilobytes.
const maxConfig = 1 << 20

// ReadConfiguration is a file of the kubelet's configuration; fs.ErrNotExist when it is not there.
func ReadConfiguration(path string) (map[string]any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's configuration: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's configuration: %w", err)
	}
	if len(data) > maxConfig {
		return nil, fmt.Errorf("reading the kubelet's configuration %s: it is larger than %d bytes", path, maxConfig)
	}
	return parseConfiguration(path, data)
}

func parseConfiguration(path string, data []byte) (map[string]any, error) {
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("reading the kubelet's configuration %s: %w", path, err)
	}
	// Headers of manifest URLs often hold a token.
	delete(config, "staticPodURLHeader")
	return config, nil
}

// DropIns are the drop-in files in a directory of the host under root, as the kubelet walks
// it: every .conf file, also of directories below, in lexical order.
func DropIns(root, dir string) ([]upgrade.KubeletDropInFacts, error) {
	var out []upgrade.KubeletDropInFacts
	top := filepath.Join(root, dir)
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case path == top && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			return err
		case entry.IsDir() || filepath.Ext(entry.Name()) != ".conf":
			return nil
		}
		out = append(out, dropIn(path, filepath.Join(dir, strings.TrimPrefix(path, top))))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the drop-in files of the kubelet: %w", err)
	}
	return out, nil
}

func dropIn(path, name string) upgrade.KubeletDropInFacts {
	config, err := ReadConfiguration(path)
	if err != nil {
		return upgrade.KubeletDropInFacts{Path: name, Broken: err.Error()}
	}
	return upgrade.KubeletDropInFacts{Path: name, Configuration: config}
}

// Merged is what a kubelet makes of its own file and of drop-in files; one that is broken
// is left out, and said.
func Merged(base map[string]any, dropIns []upgrade.KubeletDropInFacts) (map[string]any, error) {
	var errs []error
	for _, d := range dropIns {
		if d.Broken != "" {
			errs = append(errs, errors.New(d.Broken))
			continue
		}
		base = upgrade.MergeKubeletConfiguration(base, d.Configuration)
	}
	return base, errors.Join(errs...)
}

// configuration is the effective one of the kubelet that runs: its own file, and the
// drop-ins of the directory that its process was told of.
func (k *Kubelet) configuration(ctx context.Context) (map[string]any, error) {
	base, err := ReadConfiguration(filepath.Join(k.Root, ConfigPath))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	dir := k.configDir(ctx)
	if dir == "" {
		return base, nil
	}
	dropIns, err := DropIns(k.Root, dir)
	if err != nil {
		return nil, err
	}
	return Merged(base, dropIns)
}

// configDir is "" where no process can be asked: then only its own file is known.
func (k *Kubelet) configDir(ctx context.Context) string {
	status, err := k.Units.Status(ctx, Unit)
	if err != nil || status.MainPID == 0 {
		return ""
	}
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(int(status.MainPID)), "cmdline"))
	if err != nil {
		return ""
	}
	return upgrade.ConfigDir(strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00"))
}
