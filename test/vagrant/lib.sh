# Shared by the scripts beside it.
# shellcheck shell=bash
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export KUBECONFIG=$here/.vagrant/kubeconfig
export PATH=$root/bin:$PATH
cd "$here"

say() { printf '\n== %s\n' "$*"; }

# hosts: the machines that are up.
hosts() { vagrant status --machine-readable | awk -F, '$3 == "state" && $4 == "running" {print $2}'; }

# on HOST COMMAND: as root there.
on() {
	local host=$1
	shift
	vagrant ssh "$host" --no-tty --command "sudo $*" </dev/null
}

# copy HOST MODE FILE...=DESTINATION: as root there.
copy() {
	local host=$1 mode=$2 pair
	shift 2
	for pair in "$@"; do
		vagrant upload "${pair%%=*}" "/tmp/refit-upload" "$host" >/dev/null
		on "$host" "install -D -m $mode /tmp/refit-upload ${pair#*=}"
	done
}

# eventually SECONDS WHAT COMMAND: tries again until it succeeds; API servers restart meanwhile.
eventually() {
	local until=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$until" ]; then
			echo "Gave up waiting: $what" >&2
			return 1
		fi
		sleep 5
	done
}
