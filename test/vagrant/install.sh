#!/usr/bin/env bash
# Installs Refit on the fleet by the steps of the README, from this checkout's bin/ (make build image), and adopts it.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

image=refit.test/refit-coordinator:vagrant
archive=$root/dist/refit-coordinator-amd64.tar

say "Building"
make -C "$root" build image IMAGE=$image

say "The administrator's kubeconfig"
address=$(awk '$1 == "network:" {print $2}' fleet.yaml)
address=${REFIT_NETWORK:-$address}.11
(umask 077 && on cp-1 cat /etc/kubernetes/admin.conf | sed "s#https://api.refit.test:7443#https://$address:6443#" >"$KUBECONFIG")
kubectl get nodes -o wide

say "The coordinator's image, on every node that may run it"
for host in $(hosts); do
	copy "$host" 644 "$archive=/var/tmp/refit-coordinator.tar"
	on "$host" "ctr -n k8s.io images import /var/tmp/refit-coordinator.tar"
done
kubectl refit install --coordinator-image "$image"

say "Agent and executor on every host"
for host in $(hosts); do
	copy "$host" 755 "$root/bin/refit-agent=/usr/bin/refit-agent" "$root/bin/refit-executor=/usr/bin/refit-executor"
	copy "$host" 644 "$root/deploy/systemd/refit-agent.service=/etc/systemd/system/refit-agent.service" \
		"$root/deploy/systemd/refit-resume.service=/etc/systemd/system/refit-resume.service" \
		"$root/deploy/systemd/agent.yaml=/etc/refit/agent.yaml"
	on "$host" "systemctl daemon-reload"
	on "$host" "systemctl enable --now refit-resume.service refit-agent.service"
done

say "Adopting"
kubectl refit adopt
kubectl refit adopt --apply
eventually 300 "every Machine to be up to date" kubectl wait machines --all -n refit --for=condition=UpToDate --timeout=10s
kubectl get machines -n refit
