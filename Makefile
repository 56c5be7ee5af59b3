# Everything that people and CI run. `make help` lists it.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN      := $(CURDIR)/bin
FUZZTIME ?= 20s
GOTEST   ?= go test
GENERATORS := $(addprefix $(BIN)/,controller-gen crd-ref-docs proto protoc-gen-go protoc-gen-go-grpc)
KUBERNETES := $(or $(KUBEBUILDER_ASSETS),$(BIN)/kubernetes)
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

##@ Start here

.PHONY: run
run: ## Limit a small demo application on this machine, and show what to try
	@hack/run.sh

.PHONY: test
test: redis-server kubernetes ## Run every test with the race detector, against a real Redis and a real API server
	@KUBEBUILDER_ASSETS=$(KUBERNETES) $(GOTEST) -race -timeout 15m ./...

##@ Develop

.PHONY: build
build: ## Build the binaries into bin/
	@go build -trimpath -ldflags '-X main.version=$(VERSION)' -o $(BIN)/ ./cmd/...

.PHONY: lint
lint: $(BIN)/golangci-lint ## Check style, layers and common mistakes
	@$(BIN)/golangci-lint run ./...

.PHONY: fuzz
fuzz: ## Fuzz every fuzz target, FUZZTIME (default 20s) each
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: generate
generate: $(GENERATORS) ## Regenerate deep-copy functions, CRDs, their reference and the stream's code
	@hack/generate.sh

.PHONY: verify
verify: ## Fail if generated files, go.mod or formatting are not up to date
	@hack/verify.sh

##@ Prove

.PHONY: exact
exact: redis-server ## Prove exactness over many windows with several enforcer processes (minutes)
	@$(GOTEST) -tags exact -count 1 -timeout 30m ./test/exact/...

.PHONY: faults
faults: redis-server ## Break Redis in every way under load, and watch what callers see (minutes)
	@$(GOTEST) -tags faults -count 1 -timeout 20m -v ./test/faults/...

.PHONY: bench
bench: redis-server bench-peers ## Measure matching, decisions and the proxy, next to peers (minutes)
	@status=0; \
	$(GOTEST) -tags bench -count 1 -timeout 60m -v ./test/bench/... || status=1; \
	(cd test/bench/peers && $(GOTEST) -mod=mod -tags bench -count 1 -timeout 60m -v ./...) || status=1; \
	exit $$status

##@ Tools

.PHONY: generators
generators: $(GENERATORS)

.PHONY: tools
tools: $(GENERATORS) $(BIN)/golangci-lint ## Build the pinned tools into bin/

$(BIN)/controller-gen: hack/tools/go.mod hack/tools/go.sum
	@echo 'building controller-gen'
	@cd hack/tools && go build -o $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(BIN)/crd-ref-docs: hack/tools/go.mod hack/tools/go.sum
	@echo 'building crd-ref-docs'
	@cd hack/tools && go build -o $@ github.com/elastic/crd-ref-docs

$(BIN)/proto: hack/tools/go.mod hack/tools/go.sum hack/tools/proto/main.go
	@echo 'building proto'
	@cd hack/tools && go build -o $@ ./proto

$(BIN)/protoc-gen-go: hack/tools/go.mod hack/tools/go.sum
	@cd hack/tools && go build -o $@ google.golang.org/protobuf/cmd/protoc-gen-go

$(BIN)/protoc-gen-go-grpc: hack/tools/go.mod hack/tools/go.sum
	@cd hack/tools && go build -o $@ google.golang.org/grpc/cmd/protoc-gen-go-grpc

$(BIN)/golangci-lint: hack/tools/go.mod hack/tools/go.sum
	@echo 'building golangci-lint (a few minutes the first time)'
	@cd hack/tools && go build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: kubernetes
kubernetes: ## Build a kube-apiserver, etcd and kubectl for tests, unless KUBEBUILDER_ASSETS says where they are
	@[ -n "$${KUBEBUILDER_ASSETS:-}" ] || hack/kubernetes/build.sh $(BIN)/kubernetes

.PHONY: redis-server
redis-server: ## Install redis-server where it is missing
	@hack/install.sh redis-server redis-benchmark

.PHONY: bench-peers
bench-peers: ## Install what make bench compares with: nginx, HAProxy, wrk
	@hack/install.sh nginx haproxy wrk

.PHONY: clean
clean: ## Remove what was built
	@rm -rf $(BIN)

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*##"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z0-9_-]+:.*?##/ {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
