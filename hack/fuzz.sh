#!/usr/bin/env bash
# Fuzzes every fuzz target of the module, one after the other: hack/fuzz.sh TIME
set -euo pipefail

time=${1:?say how long each target runs, for example 20s}
found=0
for package in $(git grep -lE '^func Fuzz[A-Z]' -- '*_test.go' | xargs -r -n1 dirname | sort -u); do
	for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | awk '{print $2}' | sort); do
		found=$((found + 1))
		echo "fuzzing ./$package $target for $time"
		log=$(mktemp)
		if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$package" >"$log" 2>&1; then
			cat "$log" >&2
			rm -f "$log"
			exit 1
		fi
		tail -n 1 "$log"
		rm -f "$log"
	done
done
[ "$found" -gt 0 ] || { echo 'no fuzz target was found' >&2; exit 1; }
echo "$found fuzz targets found nothing"
