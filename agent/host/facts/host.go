package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/agent/host/osrelease"
)

func (g *gathering) host(context.Context) error {
	name, err := os.Hostname()
	g.problem("host.hostname", err)
	g.facts.Host.Hostname = name
	g.facts.Host.MachineID, err = g.line("etc/machine-id")
	g.problem("host.machineID", err)
	g.facts.Host.BootID, err = g.line("proc/sys/kernel/random/boot_id")
	g.problem("host.bootID", err)
	g.facts.Host.SystemUUID, err = g.line("sys/class/dmi/id/product_uuid")
	if !errors.Is(err, fs.ErrNotExist) { // many machines have no such firmware
		g.problem("host.systemUUID", err)
	}
	g.facts.Host.SystemUUID = strings.ToLower(g.facts.Host.SystemUUID)
	return nil
}

// line is the first line of a small file of the host.
func (g *gathering) line(path string) (string, error) {
	data, err := os.ReadFile(g.path(path))
	if err != nil {
		return "", fmt.Errorf("reading a fact: %w", err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
	return strings.TrimSpace(line), nil // a file with CRLF has a space at its end
}

func (g *gathering) os(context.Context) error {
	g.facts.OS.Architecture = runtime.GOARCH
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		g.problem("os.kernel", err)
	} else {
		g.facts.OS.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	g.problem("os.cgroupVersion", g.cgroups())
	return g.release()
}

// cgroups goes by what the kubelet goes by: anything but the unified hierarchy is version 1.
func (g *gathering) cgroups() error {
	const root = "sys/fs/cgroup"
	if _, err := os.Stat(g.path(root, "cgroup.controllers")); err == nil {
		g.facts.OS.CgroupVersion = 2
		return nil
	}
	if _, err := os.Stat(g.path(root)); err != nil {
		return fmt.Errorf("looking at the host's cgroups: %w", err)
	}
	g.facts.OS.CgroupVersion = 1
	return nil
}

func (g *gathering) release() error {
	found, err := osrelease.Read(g.Root)
	if err != nil {
		return err
	}
	o := &g.facts.OS
	o.ID, o.VersionID, o.PrettyName, o.IDLike, o.Family = found.ID, found.VersionID, found.PrettyName, found.IDLike, found.Family
	return nil
}
