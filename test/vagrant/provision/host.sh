#!/usr/bin/env bash
# Makes a Debian machine a host that kubeadm takes: kernel settings, containerd, kubelet, kubeadm and kubectl, as
# test/fleet has them, but from the repositories of the real world. Safe to repeat.
set -euo pipefail
: "${KUBERNETES:?}" "${CONTAINERD:?}" "${NAME:?}" "${ADDRESS:?}" "${NUMBER:?}" "${MACHINES:?}"
export DEBIAN_FRONTEND=noninteractive

minor=${KUBERNETES%.*}

kernel() {
	printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
	modprobe -a overlay br_netfilter
	printf 'net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n' >/etc/sysctl.d/90-kubernetes.conf
	sysctl --quiet --system
	swapoff --all
	sed -i '/\sswap\s/d' /etc/fstab
}

# names: every machine by its own address, and the API by a balancer on the host itself.
names() {
	{
		printf '127.0.0.1 localhost api.refit.test\n'
		for machine in $MACHINES; do
			IFS='=' read -r name address _ <<<"$machine"
			printf '%s %s\n' "$address" "$name"
		done
	} >/etc/hosts
}

# source_of NAME KEY-URL LINE: a package source with a keyring of its own.
source_of() {
	local keyring=/etc/apt/keyrings/$1.gpg
	[ -s "$keyring" ] || curl --fail --silent --show-error --location --retry 5 "$2" | gpg --dearmor --yes --output "$keyring"
	printf 'deb [signed-by=%s] %s\n' "$keyring" "$3" >"/etc/apt/sources.list.d/$1.list"
}

packages() {
	apt-get update --quiet=2
	apt-get install --yes --quiet=2 ca-certificates curl gpg haproxy containernetworking-plugins >/dev/null
	install -d -m 755 /etc/apt/keyrings
	source_of kubernetes "https://pkgs.k8s.io/core:/stable:/$minor/deb/Release.key" "https://pkgs.k8s.io/core:/stable:/$minor/deb/ /"
	source_of containerd https://download.docker.com/linux/debian/gpg "https://download.docker.com/linux/debian bookworm stable"
	apt-get update --quiet=2
	if ! command -v kubeadm >/dev/null; then
		apt-get install --yes --quiet=2 "containerd.io=$CONTAINERD-*" "kubelet=${KUBERNETES#v}-*" "kubeadm=${KUBERNETES#v}-*" "kubectl=${KUBERNETES#v}-*" >/dev/null
	fi
	apt-mark hold kubelet kubeadm kubectl >/dev/null # as kubeadm's manual asks for
}

# runtime: version 2 of the configuration is read by containerd 1.7 and 2.x alike.
runtime() {
	cat >/etc/containerd/config.toml <<-'EOF'
		version = 2

		[plugins."io.containerd.grpc.v1.cri".cni]
		  bin_dir = "/usr/lib/cni"
		  conf_dir = "/etc/cni/net.d"

		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		  runtime_type = "io.containerd.runc.v2"

		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		  SystemdCgroup = true
	EOF
	printf 'runtime-endpoint: unix:///run/containerd/containerd.sock\n' >/etc/crictl.yaml
	printf 'KUBELET_EXTRA_ARGS=--node-ip=%s\n' "$ADDRESS" >/etc/default/kubelet
	systemctl enable --quiet containerd
	systemctl restart containerd
}

# network: a bridge for the pods of this host, and a route to those of every other one.
network() {
	install -d -m 755 /etc/cni/net.d
	cat >/etc/cni/net.d/10-refit.conflist <<-EOF
		{
		  "cniVersion": "1.0.0",
		  "name": "refit",
		  "plugins": [
		    {
		      "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipMasq": true,
		      "ipam": {
		        "type": "host-local", "dataDir": "/run/cni-leases",
		        "ranges": [[{"subnet": "10.244.$NUMBER.0/24"}]],
		        "routes": [{"dst": "0.0.0.0/0"}]
		      }
		    },
		    {"type": "portmap", "capabilities": {"portMappings": true}}
		  ]
		}
	EOF
	{
		printf '[Unit]\nDescription=Routes to the pods of the other machines\nAfter=network-online.target\nWants=network-online.target\n'
		printf '\n[Service]\nType=oneshot\nRemainAfterExit=yes\n'
		for machine in $MACHINES; do
			IFS='=' read -r name address number <<<"$machine"
			[ "$name" = "$NAME" ] || printf 'ExecStart=/sbin/ip route replace 10.244.%s.0/24 via %s\n' "$number" "$address"
		done
		printf '\n[Install]\nWantedBy=multi-user.target\n'
	} >/etc/systemd/system/refit-test-routes.service
	systemctl daemon-reload
	systemctl enable --quiet refit-test-routes
	systemctl restart refit-test-routes
}

# balancer: each host reaches whichever API server is up, so that one that is being upgraded is missed by nobody.
balancer() {
	{
		printf 'defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n'
		printf 'frontend api\n  bind 127.0.0.1:7443\n  default_backend api\n'
		printf 'backend api\n  option httpchk GET /readyz\n  default-server check check-ssl verify none inter 2s fall 2 rise 2\n'
		for machine in $MACHINES; do
			IFS='=' read -r name address _ <<<"$machine"
			case $name in cp-*) printf '  server %s %s:6443\n' "$name" "$address" ;; esac
		done
	} >/etc/haproxy/haproxy.cfg
	systemctl enable --quiet haproxy
	systemctl restart haproxy
}

kernel
names
packages
runtime
network
balancer
