package fault

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
)

// state is what the host is, as its own tools say: packages and holds, every file below
// /etc, what really runs.
type state struct {
	packages, holds, files, audit string
	kubelet, containerd           string
	units                         string
}

// look waits until the pod runs again: the kubelet starts it after every window.
func (m *machine) look() state {
	m.t.Helper()
	m.eventually("the kubelet is healthy and the static pod runs", func() bool {
		_, err := m.ask("exec 3<>/dev/tcp/127.0.0.1/10248; printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3; grep -q '^ok' <&3")
		return err == nil && m.containers() == 2
	})
	return state{
		packages: m.sh(`dpkg-query --show --showformat '${Package} ${Version} ${db:Status-Status}\n'`),
		holds:    m.sh("apt-mark showhold"),
		files:    m.sh("find /etc -xdev -type f ! -name mtab ! -name ld.so.cache ! -name '.*.refit-*' -print0 | sort -z | xargs -0 sha256sum; find /etc /usr/sbin/policy-rc.d -name '.*.refit-*' -o -name policy-rc.d 2>/dev/null || true"),
		audit:    m.sh("dpkg --audit"),
		kubelet:  m.sh("/proc/$(systemctl show -p MainPID --value kubelet.service)/exe --version"),
		// The daemon's own answer, and whether some shim is of a program that is gone.
		containerd: m.sh("ctr version | sed -n '/Server/,$s/ *Version: *//p'; for exe in /proc/[0-9]*/exe; do readlink $exe 2>/dev/null | grep -E 'containerd.*deleted' || true; done"),
		units:      m.sh("systemctl is-active kubelet.service containerd.service; systemctl is-enabled kubelet.service containerd.service refit-resume.service"),
	}
}

// at says that the host runs these versions.
func (s state) at(v versions) error {
	if got := strings.TrimSpace(s.kubelet); got != "Kubernetes "+v.kubernetes {
		return fmt.Errorf("the kubelet is %q, wanted %s", got, v.kubernetes)
	}
	if got := strings.TrimSpace(s.containerd); strings.TrimPrefix(got, "v") != v.containerd {
		return fmt.Errorf("containerd and its shims are %q, wanted %s", got, v.containerd)
	}
	if s.audit != "" {
		return fmt.Errorf("the package database is not whole: %s", s.audit)
	}
	return nil
}

// installs counts how often dpkg brought a package to a version since a line of its log.
func (m *machine) installs(since int, name, version string) int {
	m.t.Helper()
	n := 0
	for _, line := range m.dpkgLog()[since:] {
		if strings.HasSuffix(line, fmt.Sprintf(" status installed %s:amd64 %s", name, version)) {
			n++
		}
	}
	return n
}

func (m *machine) dpkgLog() []string {
	m.t.Helper()
	return strings.Split(m.sh("cat /var/log/dpkg.log"), "\n")
}

// requireInstalledOnce says that each package transaction of a window came about once.
func (m *machine) requireInstalledOnce(since int, to versions, where string) {
	m.t.Helper()
	for name, version := range map[string]string{"kubeadm": to.deb(), "kubelet": to.deb(), "kubectl": to.deb(), "containerd.io": to.runtimeDeb()} {
		require.Equal(m.t, 1, m.installs(since, name, version), "%s: %s %s", where, name, version)
	}
}
