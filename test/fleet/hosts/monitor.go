package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// rebootCode is what systemd-nspawn exits with when the host asked for a reboot.
const rebootCode = 133

// EnterVerb is the hidden command of the fleet program that becomes a host's systemd-nspawn: EnterVerb CGROUP ARGV….
const EnterVerb = "enter-cgroup"

// MonitorVerb is the hidden command of the fleet program that keeps one host booted: MonitorVerb FLEET HOST.
const MonitorVerb = "monitor"

// Monitor boots the host and boots it again after each reboot; it returns when the host is powered off.
// The monitor is a process of the host's own group, beside the host: killing the group ends both, so a killed host can not
// be booted again by a monitor that was about to, and hosts outlive the fleet's daemon.
func (h Host) Monitor(ctx context.Context, peers func() ([]Host, error)) error {
	if err := EnterCgroup(h.cgroup() + "/monitor"); err != nil {
		return err
	}
	for {
		others, err := peers()
		if err != nil {
			return err
		}
		if err := h.connect(ctx, others); err != nil {
			return err
		}
		fmt.Printf("%s booting %s\n", time.Now().UTC().Format(time.RFC3339), h.Name)
		err = h.nspawn(ctx).Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != rebootCode {
			return h.poweredOff(ctx, err)
		}
	}
}

func (h Host) poweredOff(ctx context.Context, err error) error {
	if dErr := h.disconnect(ctx); dErr != nil {
		return dErr
	}
	if err != nil {
		return fmt.Errorf("running host %s: %w (its console is in %s)", h.Name, err, h.ConsoleLog())
	}
	return nil
}

func (h Host) nspawn(ctx context.Context) *exec.Cmd {
	args := append([]string{EnterVerb, h.cgroup() + "/machine"}, h.nspawnArgs()...)
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	unified := "0"
	if UnifiedCgroups() {
		unified = "1"
	}
	// USE_CGNS: the host sees its own group as the root. API_VFS_WRITABLE: the kubelet sets sysctls and refuses to start where
	// it cannot. LOCK: the disk is ours alone, and a lock file would outlive a killed host.
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="+unified, "SYSTEMD_NSPAWN_USE_CGNS=1",
		"SYSTEMD_NSPAWN_API_VFS_WRITABLE=1", "SYSTEMD_NSPAWN_LOCK=0")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

func (h Host) nspawnArgs() []string {
	args := []string{"systemd-nspawn", "--quiet", "--settings=no", "--register=no", "--keep-unit", "--boot",
		"--directory=" + h.RootDir(), "--machine=" + h.machineName(), "--hostname=" + h.Name,
		"--network-namespace-path=" + filepath.Join(netnsDir, h.netns()),
		"--capability=all", "--system-call-filter=@keyring bpf",
		"--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe"}
	for _, dev := range []string{"/dev/kmsg", "/dev/fuse"} {
		if _, err := os.Stat(dev); err == nil {
			args = append(args, "--bind="+dev)
		}
	}
	return args
}

// EnterAndExec turns the calling process into argv inside the cgroup: systemd-nspawn takes the group it starts in for the
// host's root, so it must be there before its first instruction.
func EnterAndExec(cgroup string, argv []string) error {
	if err := EnterCgroup(cgroup); err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("finding %s (on Debian: apt-get install systemd-container): %w", argv[0], err)
	}
	return fmt.Errorf("starting %s: %w", path, unix.Exec(path, argv, os.Environ()))
}

// Start boots a host that is off: program is the fleet program, which becomes the host's monitor. It returns when the host's
// systemd says that the boot is over.
func (h Host) Start(ctx context.Context, program, fleet string) error {
	if h.Running() {
		return nil
	}
	// What a dead monitor or a half-killed host left in the group would share disk and address with the new boot.
	if err := h.Kill(ctx); err != nil {
		return err
	}
	if err := h.Mount(ctx); err != nil {
		return err
	}
	console, err := os.OpenFile(h.ConsoleLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("opening the console of host %s: %w", h.Name, err)
	}
	defer console.Close()
	cmd := exec.Command(program, MonitorVerb, fleet, h.Name)
	cmd.Stdout, cmd.Stderr = console, console
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the monitor of host %s: %w", h.Name, err)
	}
	died := make(chan error, 1)
	go func() { died <- cmd.Wait() }()
	return h.awaitBoot(ctx, died)
}

// AwaitBoot waits until the systemd of a host that is on says that the boot is over.
func (h Host) AwaitBoot(ctx context.Context) error { return h.awaitBoot(ctx, nil) }

// awaitBoot waits for systemd to finish booting, or for the monitor to give up.
func (h Host) awaitBoot(ctx context.Context, died <-chan error) error {
	for {
		out, err := h.Exec(ctx, nil, "systemctl", "is-system-running", "--wait")
		switch state := strings.TrimSpace(string(out)); state {
		case "running", "degraded":
			return nil
		default:
			_ = err // not up yet: no leader, no bus, or a state on the way
		}
		select {
		case err := <-died:
			return fmt.Errorf("booting host %s: it went off: %w (its console is in %s)", h.Name, errOr(err, "powered off"), h.ConsoleLog())
		case <-ctx.Done():
			return fmt.Errorf("waiting for host %s to boot: %w (its console is in %s)", h.Name, ctx.Err(), h.ConsoleLog())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func errOr(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}

// Kill is the host's death: the cable first, then every process at once. The disk stays as it was.
func (h Host) Kill(ctx context.Context) error {
	if err := h.unplug(ctx); err != nil {
		return err
	}
	if err := killGroup(ctx, h.cgroup()); err != nil {
		return fmt.Errorf("killing host %s: %w", h.Name, err)
	}
	if err := h.disconnect(ctx); err != nil {
		return err
	}
	return removeGroup(h.cgroup())
}

// Reboot asks the host's systemd for a reboot and waits until another boot is complete. Meanwhile it looks at the host from
// outside only: a command of ours that ran inside while systemd ends all processes would hold it up, for it waits to be told
// of the end of each, and of a stranger's child nobody tells it.
func (h Host) Reboot(ctx context.Context) error {
	before := h.Leader()
	if _, err := h.Exec(ctx, nil, "systemctl", "reboot"); err != nil {
		return fmt.Errorf("rebooting host %s: %w", h.Name, err)
	}
	for {
		if now := h.Leader(); now != 0 && now != before {
			return h.awaitBoot(ctx, nil)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for host %s to come back: %w (its console is in %s)", h.Name, ctx.Err(), h.ConsoleLog())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// BootID is the id of the host's current boot. systemd-nspawn makes one per boot and mounts it over the kernel's.
func (h Host) BootID(ctx context.Context) (string, error) {
	out, err := h.Exec(ctx, nil, "cat", "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(out)), err
}
