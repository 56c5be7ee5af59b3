#!/usr/bin/env bash
# Runs Weir in front of a small application on this machine until Ctrl-C.
# LISTEN, ADMIN and APP choose other addresses; POLICIES another folder.
set -euo pipefail

cd "$(dirname "$0")/.."
listen=${LISTEN:-127.0.0.1:8080}
admin=${ADMIN:-127.0.0.1:8090}
app=${APP:-127.0.0.1:8091}
policies=${POLICIES:-config/samples/quickstart}

busy() { (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; }
for address in "$listen" "$admin" "$app"; do
	if busy "$address"; then
		echo "something listens at $address already; choose other addresses, for example: LISTEN=127.0.0.1:9080 ADMIN=127.0.0.1:9090 APP=127.0.0.1:9091 make run" >&2
		exit 1
	fi
done

work=$(mktemp -d)
pids=()
finish() {
	trap - EXIT INT TERM
	[ "${#pids[@]}" -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'finish; exit 0' INT TERM

echo 'building (the first time downloads the modules; a minute or two)'
go build -o "$work/" ./cmd/enforcer ./test/demoapp &
wait $!

"$work/demoapp" --listen "$app" &
pids+=($!)
"$work/enforcer" standalone --policies "$policies" --redis embedded \
	--upstream "http://$app" --listen "$listen" --admin-listen "$admin" &
pids+=($!)
until busy "$listen" && busy "$admin"; do
	kill -0 "${pids[1]}" 2>/dev/null || exit 1
	sleep 0.1
done

cat <<TEXT

Weir limits http://$listen by the policies in $policies. Try:

  curl -i -H 'X-User-Id: alice' http://$listen/
      200 from the application, with what is left: X-RateLimit-Remaining, RateLimit

  for i in \$(seq 105); do curl -s -o /dev/null -w '%{http_code}\n' -H 'X-User-Id: bob' http://$listen/; done | sort | uniq -c
      100 times 200, then 5 times 429 (unless the minute turns meanwhile)

  curl -i -H 'X-User-Id: bob' http://$listen/
      429 with Retry-After and a body that says which rule

  curl http://$admin/debug/policies
      what is in force; edit limit in $policies/storefront.yaml and look again

Ctrl-C ends everything.
TEXT
wait -n "${pids[@]}" || true
