#!/usr/bin/env bash
# The upgrade of test/scenario on virtual machines: an application under a budget, one edit of the pools to the next
# minor, a rollout that is followed to its end, and probes of each host that Refit has no part in.
#
#   ./upgrade.sh v1.37.2 [CONTAINERD]
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

to=${1:?usage: upgrade.sh KUBERNETES [CONTAINERD], such as upgrade.sh v1.37.2 2.4.2}
runtime=${2:-}

application() {
	kubectl apply -f - <<-'EOF'
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: refit-test, namespace: default}
		spec:
		  replicas: 4
		  selector: {matchLabels: {app: refit-test}}
		  template:
		    metadata: {labels: {app: refit-test}}
		    spec:
		      containers: [{name: pause, image: registry.k8s.io/pause:3.10}]
		---
		apiVersion: policy/v1
		kind: PodDisruptionBudget
		metadata: {name: refit-test, namespace: default}
		spec:
		  maxUnavailable: 1
		  selector: {matchLabels: {app: refit-test}}
	EOF
	kubectl rollout status deployment/refit-test --timeout=300s
}

# edit POOL VERSIONS: what an operator does with kubectl edit.
edit() {
	kubectl patch machinedeployment -n refit "$1" --type merge -p '{"spec":{"template":{"spec":{"versions":{'"$2"'}}}}}'
}

# all_at: every host reports the wish, and that it is met.
all_at() {
	kubectl wait machines --all -n refit --for=jsonpath='{.status.versions.kubelet}'="$to" --timeout=5s &&
		kubectl wait machines --all -n refit --for=condition=UpToDate --timeout=5s
}

# follow shows the table whenever it has changed.
follow() {
	local until=$((SECONDS + 3600)) before='' now
	until all_at >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$until" ]; then
			echo "Not up to date after an hour:" >&2
			kubectl refit status >&2
			return 1
		fi
		now=$(kubectl get machines -n refit --no-headers \
			-o custom-columns='NAME:.metadata.name,PHASE:.status.phase,KUBELET:.status.versions.kubelet,RUNTIME:.status.versions.containerRuntime.text' 2>/dev/null) || now=$before
		[ "$now" = "$before" ] || printf '\n%s\n' "$now"
		before=$now
		sleep 3
	done
}

# probe asks the host itself; Refit's word counts for nothing here.
probe() {
	local failed=0 host seen
	for host in $(hosts); do
		seen=$(on "$host" "kubelet --version" | tr -d '\r' | awk '{print $2}')
		printf '%s: kubelet %s, %s\n' "$host" "$seen" "$(on "$host" "containerd --version" | tr -d '\r' | awk '{print $3}')"
		[ "$seen" = "$to" ] || failed=1
	done
	if kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.spec.unschedulable}{"\n"}{end}' | grep -w true; then
		echo "A node is still cordoned." >&2
		failed=1
	fi
	return "$failed"
}

say "An application with a budget"
application

say "What would be done"
versions='"kubelet":"'"$to"'"'
[ -z "$runtime" ] || versions+=',"containerRuntime":{"name":"containerd","version":"'$runtime'"}'
edit control-plane "$versions"',"controlPlane":"'"$to"'"'
edit workers "$versions"
kubectl refit status

say "The rollout"
follow

say "What runs, by Refit and by the hosts"
kubectl get machines -n refit
kubectl rollout status deployment/refit-test --timeout=300s
probe
say "Done: every machine runs $to"
