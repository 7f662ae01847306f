# Nothing has to be installed first but Go and make; each target brings what it
# needs. "make help" lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The linter and buf are pinned in modules of their own. The linter's cache is this
# checkout's own, because it mixes up checkouts that share one.
LINT := GOLANGCI_LINT_CACHE=$(CURDIR)/.cache/golangci-lint go tool -modfile=tools/lint/go.mod golangci-lint
BUF := go tool -modfile=tools/proto/go.mod buf

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

.PHONY: demo
demo: ## watch two tenants' agents at work on a real MCP server
	@go run ./cmd/runtime demo

.PHONY: test
test: lint proto-check peers ## everything that CI checks
	go test -race ./...
	FUZZTIME=1s tools/fuzz/run --blind

.PHONY: lint
lint: ## vet and lint
	go vet ./...
	$(LINT) run --allow-parallel-runners ./...

.PHONY: proto
proto: ## generate the protobuf code again
	$(BUF) generate

.PHONY: proto-check
proto-check: ## compare the protobuf code with its source
	tools/proto/check

.PHONY: conformance
conformance: peers ## have the official suite play every scenario that a client must pass
	go test -count=1 -v ./conformance

.PHONY: fuzz
fuzz: ## search for inputs that break a parser (FUZZTIME=30s each)
	@tools/fuzz/run

.PHONY: bench
bench: ## measure
	go test -v -count=1 -timeout 30m -run '^TestTable$$' ./bench -table

# What the tests use besides Go: a C compiler for the race detector, and Node.js
# for servers that others wrote.
.PHONY: peers
peers:
	@tools/need cc gcc libc6-dev
	@tools/need node nodejs
	@tools/need npm npm
