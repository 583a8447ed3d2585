#!/usr/bin/env bash
# Makes the host a member of the cluster with kubeadm: the first control plane, another one, or a worker.
# A host that is one already is left alone.
set -euo pipefail
: "${ROLE:?}" "${NAME:?}" "${ADDRESS:?}" "${KUBERNETES:?}" "${MACHINES:?}" "${TOKEN:?}" "${CERTIFICATE_KEY:?}"

endpoint=api.refit.test:7443
kubernetes=${REFIT_TEST_ETC:-/etc}/kubernetes

# The certificate of an API server names all of them: a desk reaches them by address.
addresses() {
	for machine in $MACHINES; do
		IFS='=' read -r name address _ <<<"$machine"
		case $name in cp-*) printf -- '  - %s\n' "$address" ;; esac
	done
}

# The token is for discovery too, without a pin: this network is the fleet's own.
first() {
	cat >"$kubernetes/kubeadm.yaml" <<-EOF
		apiVersion: kubeadm.k8s.io/v1beta4
		kind: InitConfiguration
		bootstrapTokens:
		- token: $TOKEN
		  ttl: 24h0m0s
		certificateKey: $CERTIFICATE_KEY
		localAPIEndpoint:
		  advertiseAddress: $ADDRESS
		nodeRegistration:
		  name: $NAME
		  criSocket: unix:///run/containerd/containerd.sock
		---
		apiVersion: kubeadm.k8s.io/v1beta4
		kind: ClusterConfiguration
		kubernetesVersion: $KUBERNETES
		controlPlaneEndpoint: $endpoint
		networking:
		  podSubnet: 10.244.0.0/16
		apiServer:
		  certSANs:
		  - api.refit.test
		$(addresses)
		controllerManager:
		  extraArgs:
		  - name: allocate-node-cidrs # the hosts' own CNI configuration says which has which
		    value: "false"
		---
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		cgroupDriver: systemd
	EOF
	chmod 600 "$kubernetes/kubeadm.yaml"
	kubeadm init --config "$kubernetes/kubeadm.yaml" --upload-certs
}

join() {
	{
		cat <<-EOF
			apiVersion: kubeadm.k8s.io/v1beta4
			kind: JoinConfiguration
			discovery:
			  bootstrapToken:
			    apiServerEndpoint: $endpoint
			    token: $TOKEN
			    unsafeSkipCAVerification: true
			nodeRegistration:
			  name: $NAME
			  criSocket: unix:///run/containerd/containerd.sock
		EOF
		[ "$ROLE" != control-plane ] || cat <<-EOF
			controlPlane:
			  certificateKey: $CERTIFICATE_KEY
			  localAPIEndpoint:
			    advertiseAddress: $ADDRESS
		EOF
	} >"$kubernetes/kubeadm.yaml"
	chmod 600 "$kubernetes/kubeadm.yaml"
	kubeadm join --config "$kubernetes/kubeadm.yaml"
}

if [ -e "$kubernetes/kubelet.conf" ]; then
	echo "$NAME is a member of the cluster already."
	exit 0
fi
install -d -m 755 "$kubernetes"
case $ROLE in
first) first ;;
control-plane | worker) join ;;
*)
	echo "ROLE=$ROLE: must be first, control-plane or worker" >&2
	exit 2
	;;
esac
