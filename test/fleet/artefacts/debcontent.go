package artefacts

// The packages below behave like the public ones where an upgrade can notice it: names, paths, dependencies, units, and
// what their maintainer scripts do to running services.

var kubernetesPackages = []debPackage{
	{
		name: "kubelet", description: "Node agent for Kubernetes clusters", binaries: []string{"kubelet"},
		depends: []string{"iptables (>= 1.4.21)", "iproute2", "mount", "util-linux", "conntrack", "ethtool", "socat"},
		dirs:    []string{"/var/lib/kubelet", "/etc/kubernetes/manifests"},
		texts:   map[string]string{"/usr/lib/systemd/system/kubelet.service": kubeletUnit},
		// A new kubelet is enabled but not started: without a configuration it could only fail.
		postinst: script(`if [ "$1" = "configure" ]; then
` + enableUnit("kubelet.service") + `	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
` + restartIfActive("kubelet.service") + `	fi
fi`),
		prerm: stopOnRemove("kubelet.service"), postrm: forgetUnit("kubelet.service"),
	},
	{
		name: "kubeadm", description: "Command-line utility for administering a Kubernetes cluster", binaries: []string{"kubeadm"},
		depends: []string{"kubelet (>= 1.19.0)"},
		texts:   map[string]string{"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": kubeadmDropIn},
		// The drop-in belongs to the kubelet's unit, so the kubelet is restarted to use it: installing kubeadm disturbs.
		postinst: script(`if [ "$1" = "configure" ]; then
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
` + restartIfActive("kubelet.service") + `	fi
fi`),
	},
	{name: "kubectl", description: "Command-line utility for interacting with a Kubernetes cluster", binaries: []string{"kubectl"}},
}

var containerdPackages = []debPackage{{
	name: "containerd.io", description: "Container runtime", binaries: containerdCommands,
	depends:  []string{"runc"},
	provides: []string{"containerd"}, conflicts: []string{"containerd"}, replaces: []string{"containerd"},
	texts: map[string]string{"/lib/systemd/system/containerd.service": containerdUnit},
	postinst: script(`if [ "$1" = "configure" ]; then
` + enableUnit("containerd.service") + `	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		if [ -n "$2" ]; then action=restart; else action=start; fi
		deb-systemd-invoke $action containerd.service >/dev/null || true
	fi
fi`),
	prerm: stopOnRemove("containerd.service"), postrm: forgetUnit("containerd.service"),
}}

const kubeletUnit = `[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
`

const kubeadmDropIn = `# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
# This is a file that "kubeadm init" and "kubeadm join" generates at runtime, populating the KUBELET_KUBEADM_ARGS variable dynamically
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
# This is a file that the user can use for overrides of the kubelet args as a last resort. Preferably, the user should use
# the .NodeRegistration.KubeletExtraArgs object in the configuration files instead. KUBELET_EXTRA_ARGS should be sourced from this file.
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`

// No OOMScoreAdjust: lowering it needs CAP_SYS_RESOURCE, which a host of the fleet may lack.
const containerdUnit = `[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target dbus.service local-fs.target

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity

[Install]
WantedBy=multi-user.target
`

func script(body string) string { return "#!/bin/sh\nset -e\n" + body + "\nexit 0\n" }

// enableUnit keeps an administrator's `disable` across upgrades.
func enableUnit(unit string) string {
	return `	deb-systemd-helper unmask ` + unit + ` >/dev/null || true
	if deb-systemd-helper --quiet was-enabled ` + unit + `; then
		deb-systemd-helper enable ` + unit + ` >/dev/null || true
	else
		deb-systemd-helper update-state ` + unit + ` >/dev/null || true
	fi
`
}

// restartIfActive goes through deb-systemd-invoke, which asks policy-rc.d first.
func restartIfActive(unit string) string {
	return `		if systemctl --quiet is-active ` + unit + `; then
			deb-systemd-invoke restart ` + unit + ` >/dev/null || true
		fi
`
}

func stopOnRemove(unit string) string {
	return script(`if [ "$1" = "remove" ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop ` + unit + ` >/dev/null || true
fi`)
}

func forgetUnit(unit string) string {
	return script(`if [ "$1" = "remove" ] && [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = "purge" ] && [ -x /usr/bin/deb-systemd-helper ]; then
	deb-systemd-helper purge ` + unit + ` >/dev/null || true
	deb-systemd-helper unmask ` + unit + ` >/dev/null || true
fi`)
}
