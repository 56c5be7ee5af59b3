#!/usr/bin/env bash
# Writes what is made of the API types, in the current directory: hack/generate.sh
set -euo pipefail

bin=$(cd "$(dirname "$0")/.." && pwd)/bin
"$bin/controller-gen" object crd paths=./api/... output:crd:dir=config/crd
mkdir -p docs/reference
"$bin/crd-ref-docs" --source-path=api/v1alpha1 --config=hack/reference.yaml --renderer=markdown \
	--output-path=docs/reference/resources.md --log-level=ERROR
"$bin/proto" internal/distribution/streampb/stream.proto "$bin/protoc-gen-go" "$bin/protoc-gen-go-grpc"
