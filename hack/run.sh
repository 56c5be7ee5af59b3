#!/usr/bin/env bash
# Runs Weir in front of a small application on this machine until Ctrl-C.
#
#   LISTEN=127.0.0.1:8080  where to send requests
#   ADMIN=127.0.0.1:8090   where probes, metrics and debug pages are
#   APP=127.0.0.1:0        where the application listens; port 0 is any free one
#   POLICIES=config/samples/quickstart
#
# It works with the bash of macOS, too, which is of 2007.
set -euo pipefail

cd "$(dirname "$0")/.."
listen=${LISTEN:-127.0.0.1:8080}
admin=${ADMIN:-127.0.0.1:8090}
app=${APP:-127.0.0.1:0}
policies=${POLICIES:-config/samples/quickstart}

# open tells that something listens at an address.
open() {
	local host=${1%:*}
	(exec 3<>"/dev/tcp/${host:-127.0.0.1}/${1##*:}") 2>/dev/null
}

for address in "$listen" "$admin"; do
	if open "$address"; then
		echo "something listens at $address already; choose other addresses: LISTEN=127.0.0.1:9080 ADMIN=127.0.0.1:9090 make run" >&2
		exit 1
	fi
done

work=$(mktemp -d)
pids=()
finish() {
	trap - EXIT
	trap '' INT TERM HUP
	[ "${#pids[@]}" -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'finish; exit 0' INT TERM HUP

echo 'building; the first time downloads modules and takes a minute or two'
go build -o "$work/" ./cmd/enforcer ./test/demoapp &
pids+=($!)
wait $!
pids=()

# The programs end when this shell does, even by kill -9: the keeper reads from a
# pipe that only this shell holds open for writing.
mkfifo "$work/alive"
exec 9<>"$work/alive"
keep() {
	exec 9>&-
	read -r _ <"$work/alive" || kill "$@" 2>/dev/null || true
	rm -rf "$work"
}
start() {
	"$@" 9>&- &
	pids+=($!)
}

start "$work/demoapp" --listen "$app" >"$work/demoapp.out"
until [ -s "$work/demoapp.out" ]; do
	kill -0 "${pids[0]}" 2>/dev/null || exit 1
	sleep 0.1
done
upstream=$(head -n 1 "$work/demoapp.out")

start "$work/enforcer" standalone --policies "$policies" --redis embedded \
	--upstream "$upstream" --listen "$listen" --admin-listen "$admin"
keep "${pids[@]}" &
pids+=($!)
until open "$listen" && open "$admin"; do
	kill -0 "${pids[1]}" 2>/dev/null || exit 1
	sleep 0.1
done

cat <<TEXT

Weir limits $upstream, a small application, at http://$listen
by the policies in $policies. Try:

  curl -i -H 'X-User-Id: alice' http://$listen/
      200 from the application, and what is left: X-RateLimit-Remaining, RateLimit

  for i in \$(seq 105); do curl -s -o /dev/null -w '%{http_code}\n' -H 'X-User-Id: bob' http://$listen/; done | sort | uniq -c
      100 times 200, then 5 times 429 (unless the minute turns meanwhile)

  curl -i -H 'X-User-Id: bob' http://$listen/
      429 with Retry-After, and a body that says which rule

  curl http://$admin/debug/policies
      what is in force; edit a limit in $policies and look again

  curl -s http://$admin/metrics | grep weir_decisions_total
      what each rule has decided

Ctrl-C ends everything.
TEXT
wait "${pids[1]}"
