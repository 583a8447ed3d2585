package artefacts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// goBuild builds commands of a published Go module as a static binary each, inside a small generated module.
type goBuild struct {
	module   string
	version  string
	requires map[string]string // further modules, with versions
	ldflags  []string
	commands map[string]string // name of the binary: package
	sources  map[string]string // files of a package that the generated module itself holds, if it is that which is built
}

// goModule is what `go mod download -json` and `go mod edit -json` say, as far as it matters here.
type goModule struct {
	GoMod   string
	Go      string
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func (b goBuild) run(ctx context.Context, w workplace) error {
	src := filepath.Join(w.dir, "src")
	if err := b.generate(ctx, w, src); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(b.commands))
	for i, name := range names {
		w.note(fmt.Sprintf("compiling %s (%d of %d)", name, i+1, len(names)))
		cmd := goCommand(src, "build", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(b.ldflags, " "),
			"-o", filepath.Join(w.dir, "bin", name), b.commands[name])
		cmd.argv, cmd.log = append([]string{"nice", "-n", "10"}, cmd.argv...), w.log
		if err := cmd.run(ctx); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(src); err != nil {
		return fmt.Errorf("removing generated module: %w", err)
	}
	return nil
}

// generate writes the module. A file that imports the commands lets `go mod tidy` complete the module's requirements; it
// carries on past packages that only tests of dependencies import. A published module's own `replace` lines are ignored
// when it is a dependency, so they are repeated: a local directory stands for the module of the same release that was
// published from it.
func (b goBuild) generate(ctx context.Context, w workplace, src string) error {
	if err := os.MkdirAll(src, 0o755); err != nil {
		return fmt.Errorf("creating generated module: %w", err)
	}
	mod, err := downloadModule(ctx, src, b.module+"@"+b.version)
	if err != nil {
		return err
	}
	files := map[string]string{"go.mod": b.goMod(mod)}
	maps.Copy(files, b.sources)
	if len(b.sources) == 0 {
		files["tools.go"] = b.importer()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing generated module: %w", err)
		}
	}
	w.note("resolving dependencies")
	tidy := goCommand(src, "mod", "tidy", "-e")
	tidy.log = w.log
	return tidy.run(ctx)
}

func (b goBuild) importer() string {
	text := "//go:build tools\n\npackage fleetbuild\n\nimport (\n"
	for _, name := range slices.Sorted(maps.Keys(b.commands)) {
		text += fmt.Sprintf("\t_ %q\n", b.commands[name])
	}
	return text + ")\n"
}

func (b goBuild) goMod(mod goModule) string {
	var text strings.Builder
	fmt.Fprintf(&text, "module fleetbuild\n\ngo %s\n\nrequire %s %s\n", mod.Go, b.module, b.version)
	for _, path := range slices.Sorted(maps.Keys(b.requires)) {
		fmt.Fprintf(&text, "require %s %s\n", path, b.requires[path])
	}
	for _, r := range mod.Replace {
		switch {
		case strings.HasPrefix(r.New.Path, "./staging/"):
			fmt.Fprintf(&text, "replace %s => %s %s\n", r.Old.Path, r.Old.Path, stagingVersion(b.version))
		case r.New.Version != "":
			fmt.Fprintf(&text, "replace %s => %s %s\n", strings.TrimSpace(r.Old.Path+" "+r.Old.Version), r.New.Path, r.New.Version)
		}
	}
	return text.String()
}

// stagingVersion turns v1.37.2 of Kubernetes into v0.37.2, the version of the modules published with it.
func stagingVersion(kubernetes string) string { return "v0." + strings.TrimPrefix(kubernetes, "v1.") }

func downloadModule(ctx context.Context, dir, moduleAtVersion string) (goModule, error) {
	var mod goModule
	out, err := goCommand(dir, "mod", "download", "-json", moduleAtVersion).output(ctx)
	if err != nil {
		return mod, err
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return mod, fmt.Errorf("reading what go says about module %s: %w", moduleAtVersion, err)
	}
	out, err = goCommand(dir, "mod", "edit", "-json", mod.GoMod).output(ctx)
	if err != nil {
		return mod, err
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return mod, fmt.Errorf("reading %s: %w", mod.GoMod, err)
	}
	return mod, nil
}

// goCommand runs go free of the settings of the checkout or workspace it may be started in.
func goCommand(dir string, args ...string) command {
	return command{dir: dir, env: []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="}, argv: append([]string{"go"}, args...)}
}
