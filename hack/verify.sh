#!/usr/bin/env bash
# Fails if something in the tree is not what its source would make of it.
set -euo pipefail

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
	echo "not formatted, run gofmt -w on: $unformatted" >&2
	exit 1
fi

# Generate in a copy, so that a failed check leaves the tree alone.
make -s generators
mkdir "$work/tree"
git ls-files -z -- api internal/distribution/streampb go.mod go.sum config/crd hack/reference.yaml | xargs -0 cp --parents -t "$work/tree" 2>/dev/null || true
(cd "$work/tree" && "$OLDPWD/hack/generate.sh")
for path in api config/crd internal/distribution/streampb docs/reference/resources.md; do
	diff -ru "$path" "$work/tree/$path" || { echo 'generated files are not up to date, run make generate' >&2; exit 1; }
done

for module in . hack/tools hack/kubernetes test/bench/peers; do
	(cd "$module" && go mod tidy -diff) || { echo "run go mod tidy in $module" >&2; exit 1; }
done
go vet ./...
bash -n hack/*.sh .ci/run
echo 'verified: formatting, generated files, modules, vet'
