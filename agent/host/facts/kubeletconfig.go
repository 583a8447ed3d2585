package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/kubelet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// kubeletConfiguration merges the files that the kubelet reads: those of the process that
// runs, else those that its unit would have it read. Refit's own drop-in is told in any case.
func (g *gathering) kubeletConfiguration(k *upgrade.ComponentFacts) error {
	base, err := kubelet.ReadConfiguration(g.path(kubelet.ConfigPath))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err //nolint:wrapcheck // says what it was reading
	}
	dir := upgrade.ConfigDir(k.Flags)
	if len(k.Flags) == 0 && k.ConfigArgs != nil {
		dir = upgrade.ConfigDir(strings.Fields(k.ConfigArgs.Value))
	}
	own, err := kubelet.DropIns(g.Root, upgrade.KubeletDropInDir)
	if err != nil {
		return err //nolint:wrapcheck // says what it was reading
	}
	k.DropIns, k.Configuration = own, base
	if dir == "" {
		return nil
	}
	read := own
	if dir != upgrade.KubeletDropInDir {
		if read, err = kubelet.DropIns(g.Root, dir); err != nil {
			return err //nolint:wrapcheck // says what it was reading
		}
		k.DropIns = append(slices.Clone(read), own...)
	}
	k.Configuration, err = kubelet.Merged(base, othersOrWhole(read))
	return err //nolint:wrapcheck // says what it was reading
}

// othersOrWhole leaves out a broken drop-in of Refit's: it is written anew, and keeps back no plan.
func othersOrWhole(dropIns []upgrade.KubeletDropInFacts) []upgrade.KubeletDropInFacts {
	return slices.DeleteFunc(slices.Clone(dropIns), func(d upgrade.KubeletDropInFacts) bool {
		return d.Path == upgrade.KubeletDropInPath && d.Broken != ""
	})
}

const configArgs = "KUBELET_CONFIG_ARGS"

// configArgs is what the files of the kubelet's unit set the variable to, Refit's own left
// out; nil where the unit does not use it.
func (g *gathering) configArgs(units []string) (*upgrade.ConfigArgsFacts, error) {
	e := environment{}
	for _, path := range units {
		if path == "" || path == upgrade.KubeletUnitDropInPath {
			continue
		}
		f, err := os.Open(g.path(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the kubelet's unit: %w", err)
		}
		options, err := unit.DeserializeOptions(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the kubelet's unit %s: %w", path, err)
		}
		e.take(options)
	}
	if !strings.Contains(e.execStart, "$"+configArgs) && !strings.Contains(e.execStart, "${"+configArgs+"}") {
		return nil, nil
	}
	out := &upgrade.ConfigArgsFacts{Value: e.value}
	for _, path := range e.files {
		path, optional := strings.CutPrefix(path, "-")
		data, err := os.ReadFile(g.path(path))
		if errors.Is(err, fs.ErrNotExist) && optional {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading an environment file of the kubelet's unit: %w", err)
		}
		if value, set := variableIn(string(data), configArgs); set {
			out.Value, out.EnvironmentFile = value, path
		}
	}
	return out, nil
}

// environment is what the files of a unit say of its variables, as far as it is looked at.
type environment struct {
	value     string
	files     []string
	execStart string
}

func (e *environment) take(options []*unit.UnitOption) {
	for _, o := range options {
		if o.Section != "Service" {
			continue
		}
		value := strings.TrimSpace(strings.ReplaceAll(o.Value, "\\\n", " ")) // a line that goes on
		switch {
		case o.Name == "ExecStart":
			e.execStart = value
		case o.Name == "EnvironmentFile" && value == "":
			e.files = nil
		case o.Name == "EnvironmentFile":
			e.files = append(e.files, value)
		case o.Name == "Environment" && value == "":
			e.value = ""
		case o.Name == "Environment":
			for _, word := range unitWords(value) {
				if set, ok := strings.CutPrefix(word, configArgs+"="); ok {
					e.value = set
				}
			}
		}
	}
}

// unitWords takes a value of a unit file apart as systemd does: by spaces, with quotes of
// both kinds, which may stand in the middle of a word, and with backslashes.
func unitWords(text string) []string {
	var words []string
	var word strings.Builder
	in, quote, escaped := false, rune(0), false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\':
			in, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			in, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			in = true
			word.WriteRune(r)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}

// variableIn is the last value that an environment file gives a variable.
func variableIn(content, name string) (value string, set bool) {
	for line := range strings.Lines(content) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+"=")
		if ok {
			value, set = strings.Join(unitWords(rest), " "), true
		}
	}
	return value, set
}

// managedFiles tells of the files that Refit keeps on the host, those that are there.
func (g *gathering) managedFiles(context.Context) error {
	for _, path := range upgrade.KubeletDropIns {
		info, err := os.Stat(g.path(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking at a file of Refit's: %w", err)
		}
		digest, _, err := files.Digest(g.path(path))
		if err != nil {
			return err //nolint:wrapcheck // says what it was reading
		}
		g.facts.ManagedFiles = append(g.facts.ManagedFiles, upgrade.ManagedFileFacts{
			Path: path, SHA256: digest, Mode: uint32(info.Mode().Perm()), ModTime: info.ModTime().UTC(),
		})
	}
	return nil
}
