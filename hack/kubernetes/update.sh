#!/usr/bin/env bash
# Pins another version of Kubernetes: hack/kubernetes/update.sh v1.37.2
# k8s.io/kubernetes takes its staging modules from its own tree, which no module
# outside can do, so each is replaced by the release that was cut beside it.
set -euo pipefail

cd "$(dirname "$0")"
version=${1:?which version, for example v1.37.2}
staging=v0.${version#v1.}
tree=$(cd "$(mktemp -d)" && go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
{
	printf 'module github.com/weir-dev/weir/hack/kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$version"
	sed -n 's|^\t\(k8s.io/[^ ]*\) => ./staging.*|\1|p' "$tree/go.mod" | while read -r module; do
		printf '\t%s => %s %s\n' "$module" "$module" "$staging"
	done
	printf ')\n\ntool (\n\tk8s.io/kubernetes/cmd/kube-apiserver\n\tk8s.io/kubernetes/cmd/kubectl\n\tgo.etcd.io/etcd/server/v3\n)\n'
} >go.mod
go mod tidy
