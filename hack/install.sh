#!/usr/bin/env bash
# Installs programs that are missing on this machine: hack/install.sh PROGRAM…
# Does nothing where all are there. Debian's packages are used where apt is.
set -euo pipefail

package_of() {
	case "$1" in
	redis-benchmark | redis-cli) echo redis-tools ;;
	nginx) echo nginx-light ;;
	*) echo "$1" ;;
	esac
}

export PATH="$PATH:/usr/sbin:/sbin"
missing=()
for program in "$@"; do
	command -v "$program" >/dev/null || missing+=("$(package_of "$program")")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "missing: ${missing[*]}. Install it with your package manager (for example: brew install redis) and try again." >&2
	exit 1
fi
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing ${missing[*]}"
install() {
	"${sudo[@]}" apt-get update && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends "${missing[@]}"
}
# A package's own start of its service may be refused in a container; what
# counts is that the programs are there.
if ! install >"$log" 2>&1; then
	for program in "$@"; do
		command -v "$program" >/dev/null || { cat "$log" >&2; exit 1; }
	done
fi
