package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/kubelet"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Files that may set flags of the kubelet, besides its unit and drop-ins.
var kubeletEnvironments = []string{"var/lib/kubelet/kubeadm-flags.env", "etc/default/kubelet", "etc/sysconfig/kubelet"}

func (g *gathering) kubelet(ctx context.Context) error {
	status, err := g.Units.Status(ctx, kubelet.Unit)
	if err == nil {
		status, err = g.beyondItsStart(ctx, status)
	}
	if err != nil {
		return fmt.Errorf("looking for the kubelet: %w", err)
	}
	program := command.Find("kubelet")
	if !status.Exists() && program == "" {
		return nil // not a node
	}
	k := &upgrade.ComponentFacts{}
	g.facts.Kubelet = k
	if status.Exists() {
		k.Unit, k.Active, k.MainPID, k.StartTime = kubelet.Unit, status.ActiveState == "active", status.MainPID, status.StartTime
	}
	if status.MainPID != 0 {
		program = g.runningKubelet(ctx, k, program)
	}
	switch {
	case k.Running != "" && isProgramOf(program, k.MainPID):
		k.Installed = k.Running // the very same file: not asked twice
	case program != "":
		k.Installed, err = kubelet.ProgramVersion(ctx, g.Runner, program)
		g.problem("kubelet.installed", err)
	}
	k.FlagSources, err = g.flagSources(append([]string{status.Fragment}, status.DropIns...))
	g.problem("kubelet.flagSources", err)
	k.ConfigArgs, err = g.configArgs(append([]string{status.Fragment}, status.DropIns...))
	g.problem("kubelet.configArgs", err)
	g.problem("kubelet.configuration", g.kubeletConfiguration(k))
	k.State, err = g.kubeletState()
	g.problem("kubelet.state", err)
	return nil
}

// startFails is within which time a process ends that cannot start.
const startFails = 5 * time.Second

// beyondItsStart waits out the first moments of a process that systemd has started again by
// itself: one that fails at its start, again and again, is met now and then, and does not run.
func (g *gathering) beyondItsStart(ctx context.Context, s systemd.Status) (systemd.Status, error) {
	if s.Restarts == 0 || s.MainPID == 0 || s.StartTime == nil {
		return s, nil
	}
	left := startFails - time.Since(*s.StartTime)
	if left <= 0 {
		return s, nil
	}
	select {
	case <-ctx.Done():
		return s, context.Cause(ctx) //nolint:wrapcheck // the caller says what it was looking for
	case <-time.After(left):
	}
	again, err := g.Units.Status(ctx, s.Unit)
	if again.MainPID != s.MainPID {
		again.MainPID, again.ActiveState, again.StartTime = 0, "activating", nil
	}
	return again, err //nolint:wrapcheck // likewise
}

// runningKubelet asks the process, and returns the path that it was started from:
// what is there now is what a restart would run.
func (g *gathering) runningKubelet(ctx context.Context, k *upgrade.ComponentFacts, program string) string {
	var err error
	k.Running, err = kubelet.RunningVersion(ctx, g.Runner, int(k.MainPID))
	g.problem("kubelet.running", err)
	k.Flags, err = flagsOf(k.MainPID)
	g.problem("kubelet.flags", err)
	if path, err := programOf(k.MainPID); err == nil {
		program = path
	}
	return program
}

// flagLine is a line that can give the kubelet a flag.
var flagLine = regexp.MustCompile(`--[a-z]`)

// flagSources are the lines of unit, drop-ins and environment files that hold flags.
func (g *gathering) flagSources(units []string) (map[string]string, error) {
	paths := append([]string{}, kubeletEnvironments...)
	for _, unit := range units {
		if unit != "" {
			paths = append(paths, strings.TrimPrefix(unit, "/"))
		}
	}
	sources := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(g.path(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return sources, fmt.Errorf("reading where the kubelet's flags come from: %w", err)
		}
		if lines := flagLines(string(data)); lines != "" {
			sources["/"+path] = lines
		}
	}
	return sources, nil
}

func flagLines(content string) string {
	var kept []string
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") && flagLine.MatchString(line) {
			kept = append(kept, strings.Join(redact(strings.Fields(line)), " "))
		}
	}
	return strings.Join(kept, "\n")
}

func (g *gathering) kubeadm(ctx context.Context) error {
	program := command.Find("kubeadm")
	if program == "" || g.Root != "/" {
		if _, err := os.Stat(g.path("usr/bin/kubeadm")); err != nil {
			return nil //nolint:nilerr // a host without kubeadm has no fault
		}
		program = g.path("usr/bin/kubeadm")
	}
	result, err := g.Runner.Run(ctx, command.Command{Argv: []string{program, "version", "-o", "short"}})
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", filepath.Base(program), err)
	}
	g.facts.Kubeadm = &upgrade.ComponentFacts{Installed: strings.TrimSpace(result.Stdout)}
	return nil
}
