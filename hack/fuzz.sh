#!/usr/bin/env bash
# Fuzzes every fuzz target of the module, one after the other: hack/fuzz.sh TIME
set -euo pipefail

time=${1:?say how long each target runs, for example 20s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz runs one target. When the time is up while an input is being tried, go test
# may call that a failure of its own ("context deadline exceeded"). It found nothing
# then, since it would have written the input down, so it goes again.
fuzz() {
	local package=$1 target=$2
	for _ in 1 2 3; do
		if go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$package" >"$log" 2>&1; then
			tail -n 1 "$log"
			return
		fi
		grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log" || break
	done
	cat "$log" >&2
	return 1
}

found=0
for package in $(git grep -lE '^func Fuzz[A-Z]' -- '*_test.go' | xargs -r -n1 dirname | sort -u); do
	for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | awk '{print $2}' | sort); do
		found=$((found + 1))
		echo "fuzzing ./$package $target for $time"
		fuzz "$package" "$target"
	done
done
[ "$found" -gt 0 ] || { echo 'no fuzz target was found' >&2; exit 1; }
echo "$found fuzz targets found nothing"
