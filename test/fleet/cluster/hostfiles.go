package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/fleet/daemon"
	"github.com/refit-dev/refit/test/fleet/hosts"
)

// preparedMark is written last on a new host's disk. Nothing of the fleet's is written over what is on a prepared host:
// what an upgrade changed there stays changed.
const preparedMark = "/etc/fleet/prepared"

// Prepare mounts the host's disk and, if it is new, gives it what an installer would have.
func Prepare(ctx context.Context, h hosts.Host, pauseImage string) error {
	if err := h.Mount(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(h.RootDir(), preparedMark)); err == nil {
		return nil
	}
	files, err := hostFiles(h, pauseImage)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := h.WriteFile(f.Path, f.Content, f.Mode); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/var/log/journal", "/etc/cni/net.d"} { // the first keeps the journal over reboots
		if err := os.MkdirAll(filepath.Join(h.RootDir(), dir), 0o755); err != nil {
			return fmt.Errorf("making %s of host %s: %w", dir, h.Name, err)
		}
	}
	if err := enableUnits(h); err != nil {
		return err
	}
	return h.WriteFile(preparedMark, nil, 0o644)
}

func hostFiles(h hosts.Host, pauseImage string) ([]hosts.File, error) {
	machineID := make([]byte, 16)
	if _, err := rand.Read(machineID); err != nil {
		return nil, fmt.Errorf("making a machine id: %w", err)
	}
	v1, err := hosts.V1Controllers()
	if err != nil {
		return nil, err
	}
	names := fmt.Sprintf("127.0.0.1 localhost\n%s %s\n%s", h.Address(), h.Name, fleetNames(h.Site))
	// Nobody answers there, but CoreDNS refuses to start with nobody to ask.
	resolv := fmt.Sprintf("nameserver %s\noptions timeout:1 attempts:1\n", h.Site.Gateway())
	return []hosts.File{
		{Path: "/etc/machine-id", Content: []byte(hex.EncodeToString(machineID) + "\n"), Mode: 0o444},
		{Path: "/etc/hostname", Content: []byte(h.Name + "\n"), Mode: 0o644},
		{Path: "/etc/hosts", Content: []byte(names), Mode: 0o644},
		{Path: "/etc/resolv.conf", Content: []byte(resolv), Mode: 0o644},
		{Path: "/etc/containerd/config.toml", Content: []byte(containerdConfig(pauseImage)), Mode: 0o644},
		{Path: "/etc/containerd/certs.d/" + daemon.RegistryHost + "/hosts.toml", Content: []byte(registryConfig), Mode: 0o644},
		{Path: "/etc/crictl.yaml", Content: []byte("runtime-endpoint: " + criSocket + "\n"), Mode: 0o644},
		{Path: "/etc/cni/net.d/10-fleet.conflist", Content: []byte(cniConfig(h)), Mode: 0o644},
		{Path: auditPolicyFile, Content: audit.Bodies, Mode: 0o644},
		{Path: "/etc/systemd/system/" + cgroupUnit, Content: []byte(cgroupUnitText(v1)), Mode: 0o644},
	}, nil
}

// fleetNames are the names of what the fleet's daemon serves.
func fleetNames(site hosts.Site) string {
	return fmt.Sprintf("%s %s %s\n", site.Gateway(), MirrorHost, daemon.RegistryHost)
}

const registryConfig = `server = "http://` + daemon.RegistryHost + `"

[host."http://` + daemon.RegistryHost + `"]
  capabilities = ["pull", "resolve"]
`

// containerdConfig is in version 2 of containerd's format, the only one that 1.7 and 2.x both read.
// restrict_oom_score_adj: a host without CAP_SYS_RESOURCE cannot lower a container's score.
func containerdConfig(pauseImage string) string {
	const cri = `plugins."io.containerd.grpc.v1.cri"`
	return fmt.Sprintf(`version = 2

[%[1]s]
  sandbox_image = %[2]q
  restrict_oom_score_adj = true

[%[1]s.cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "/etc/cni/net.d"

[%[1]s.registry]
  config_path = "/etc/containerd/certs.d"

[%[1]s.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[%[1]s.containerd.runtimes.runc.options]
  SystemdCgroup = %[3]t
`, cri, pauseImage, hosts.UnifiedCgroups())
}

// The leases of pod addresses are kept where a boot forgets them: the pods they were for are gone as well.
func cniConfig(h hosts.Host) string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "fleet",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-leases",
        "ranges": [[{"subnet": "%s"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, h.PodSubnet())
}

const cgroupUnit = "fleet-cgroups.service"

// cgroupUnitText makes the v1 controllers writable, which systemd-nspawn mounts read-only; with cgroup v2 it has nothing to do.
func cgroupUnitText(v1 []string) string {
	var b strings.Builder
	b.WriteString("[Unit]\nDescription=Let this host write in its own control groups\nDefaultDependencies=no\n" +
		"Before=sysinit.target\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n")
	if len(v1) > 0 {
		v1 = append([]string{"/sys/fs/cgroup"}, v1...)
	}
	for _, dir := range v1 {
		fmt.Fprintf(&b, "ExecStart=/bin/mount -o remount,bind,rw %s\n", dir)
	}
	if len(v1) == 0 {
		b.WriteString("ExecStart=/bin/true\n")
	}
	b.WriteString("\n[Install]\nWantedBy=sysinit.target\n")
	return b.String()
}

// enableUnits does what systemctl enable and mask would. systemd-sysctl would set the one kernel's settings for all.
func enableUnits(h hosts.Host) error {
	system := filepath.Join(h.RootDir(), "etc/systemd/system")
	links := map[string]string{
		filepath.Join(system, "sysinit.target.wants", cgroupUnit): "../" + cgroupUnit,
		filepath.Join(system, "systemd-sysctl.service"):           "/dev/null",
		filepath.Join(system, "systemd-modules-load.service"):     "/dev/null",
	}
	for path, target := range links {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("enabling units of host %s: %w", h.Name, err)
		}
		if err := os.Symlink(target, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("enabling units of host %s: %w", h.Name, err)
		}
	}
	return nil
}
