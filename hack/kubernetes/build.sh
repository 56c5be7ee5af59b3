#!/usr/bin/env bash
# Builds kube-apiserver, etcd and kubectl for tests: hack/kubernetes/build.sh DIR
# Does nothing where DIR has what go.mod asks for. The first time takes minutes,
# so it says every half minute that it is still at it.
set -euo pipefail

out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
stamp=$(cat go.mod go.sum "$(basename "$0")" | sha256sum)
[ "$(cat "$out/.stamp" 2>/dev/null)" != "$stamp" ] || exit 0

minor=${version#v1.}
flags='-s -w'
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
done

began=$SECONDS
echo "building kube-apiserver, etcd and kubectl $version (7 to 10 minutes on 2 cores the first time)"
(while sleep 30; do echo "still building, $((SECONDS - began)) s"; done) &
trap 'kill $! 2>/dev/null' EXIT
export CGO_ENABLED=0 GOWORK=off
go build -trimpath -ldflags "$flags" -o "$out/" k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl
go build -trimpath -ldflags "$flags" -o "$out/etcd" go.etcd.io/etcd/server/v3 # its own name is server
echo "$stamp" >"$out/.stamp"
echo "built in $((SECONDS - began)) s"
