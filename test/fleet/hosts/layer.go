package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Layer is a read-only part of host disks that is made once and kept in a cache: what Commands leave behind when they run
// on top of Base.
type Layer struct {
	Site    Site
	Program string // the fleet program
	Base    string
	Dir     string // where the layer is kept
	Files   []File
	// Commands run one after another as root of a host that is not booted, in the machine's network.
	Commands [][]string
	Env      []string
}

// File is a file of a layer.
type File struct {
	Path    string
	Content []byte
	Mode    os.FileMode
}

// Build makes the layer unless it is there. The rename at the end is what makes it exist: a crash leaves a work directory,
// which the next Build, holding the lock, throws away.
func (l Layer) Build(ctx context.Context) error {
	unlock, err := Lock(ctx, l.Dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(l.Dir); err == nil {
		return nil
	}
	work := l.Dir + ".making"
	if err := l.discard(context.WithoutCancel(ctx), work); err != nil {
		return err
	}
	if err := l.fill(ctx, work); err != nil {
		return errors.Join(err, l.discard(context.WithoutCancel(ctx), work))
	}
	if err := unmountBelow(l.mountPoint()); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(work, "upper"), l.Dir); err != nil {
		return fmt.Errorf("keeping the layer: %w", err)
	}
	return l.discard(context.WithoutCancel(ctx), work)
}

// The layer is mounted below the fleet's directory, where down looks for mounts.
func (l Layer) mountPoint() string { return filepath.Join(l.Site.Dir, "layer") }

func (l Layer) cgroup() string { return l.Site.cgroup() + "/layer" }

// discard also ends what a Build that was killed left running on the layer.
func (l Layer) discard(ctx context.Context, work string) error {
	if err := errors.Join(killGroup(ctx, l.cgroup()), removeGroup(l.cgroup())); err != nil {
		return err
	}
	if err := unmountBelow(l.mountPoint()); err != nil {
		return err
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("removing an unfinished layer: %w", err)
	}
	return nil
}

func (l Layer) fill(ctx context.Context, work string) error {
	for _, d := range []string{filepath.Join(work, "upper"), filepath.Join(work, "work"), l.mountPoint()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("preparing a layer: %w", err)
		}
	}
	opts := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", l.Base, filepath.Join(work, "upper"), filepath.Join(work, "work"))
	if err := unix.Mount("overlay", l.mountPoint(), "overlay", 0, opts); err != nil {
		return fmt.Errorf("mounting a layer (%s): %w", opts, err)
	}
	for _, f := range l.Files {
		path := filepath.Join(l.mountPoint(), f.Path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.Content, f.Mode)); err != nil {
			return fmt.Errorf("writing %s of a layer: %w", f.Path, err)
		}
	}
	for _, argv := range l.Commands {
		if err := l.run(ctx, argv); err != nil {
			return err
		}
	}
	return nil
}

func (l Layer) run(ctx context.Context, argv []string) error {
	args := []string{EnterVerb, l.cgroup(), "systemd-nspawn", "--quiet", "--settings=no", "--register=no", "--keep-unit", "--as-pid2",
		"--directory=" + l.mountPoint(), "--machine=" + l.Site.Link() + "-layer", "--resolv-conf=off", "--timezone=off", "--console=pipe"}
	for _, e := range l.Env {
		args = append(args, "--setenv="+e)
	}
	cmd := exec.CommandContext(ctx, l.Program, append(append(args, "--"), argv...)...)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_LOCK=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %q on a layer: %w: %s", strings.Join(argv, " "), err, tail(out))
	}
	return nil
}

// tail keeps the end of a long output: that is where programs say what went wrong.
func tail(out []byte) string {
	const most = 2000
	text := strings.TrimSpace(string(out))
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return text
}
