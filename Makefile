# Refit. `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
include hack/versions.mk

# One set of flags for programs and tests, so that the build cache serves both.
export GOFLAGS := -trimpath
export CGO_ENABLED := 0

BIN      := bin
CACHE    ?= $(or $(REFIT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/refit)
TOOLS    := $(CACHE)/tools
LINT     := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
VULN     := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)/govulncheck
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X github.com/refit-dev/refit/pkg/version.Version=$(VERSION)
ARCH     ?= $(shell go env GOARCH)
IMAGE    ?= refit-coordinator:$(VERSION)
AGENT_IMAGE ?= refit-agent:$(VERSION)
PROGRAMS := refit-agent refit-executor refit-coordinator kubectl-refit
# Everything in packages and archives is of the commit's time: the same commit gives the same bytes.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
RELEASE  := dist/release
BUILT    := dist/programs
DESKS    := darwin-amd64 darwin-arm64 windows-amd64
# The CLI that was just built for this machine, where it is one that a release has.
RELEASED_CLI = $(if $(filter linux,$(shell go env GOHOSTOS)),$(BUILT)/linux-$(shell go env GOHOSTARCH)/kubectl-refit,go run -ldflags '$(LDFLAGS)' ./cmd/kubectl-refit)
MAKE_RELEASE = cd hack/release && go run . -version '$(VERSION)' -epoch $(SOURCE_DATE_EPOCH) -root $(CURDIR) -programs $(CURDIR)/$(BUILT)

##@ Everything at once
.PHONY: demo
demo: deps build fleet ## Upgrade a small real fleet in place and leave it up (as root, Debian 12)
	$(BIN)/refit-demo

.PHONY: demo-down
demo-down: fleet ## Take the demo fleet down and restore the machine
	$(BIN)/fleet down --name demo

.PHONY: test
test: deps test-unit test-api test-fleet ## Unit tests, API tests on a real API server, the demo as an assertion on a real fleet

.PHONY: presubmit
presubmit: verify lint vulncheck test ## Exactly what CI runs

##@ Building
.PHONY: build
build: ## Build the programs into bin/
	go build -ldflags '$(LDFLAGS)' -o $(BIN)/ $(addprefix ./cmd/,$(PROGRAMS))

.PHONY: image
image: image-coordinator image-agent ## Both images for ARCH as archives in dist/; no container engine is needed

.PHONY: image-coordinator
image-coordinator: ## The coordinator's image IMAGE
	GOARCH=$(ARCH) go build -ldflags '$(LDFLAGS)' -o dist/linux-$(ARCH)/refit-coordinator ./cmd/refit-coordinator
	go run ./hack/image --program dist/linux-$(ARCH)/refit-coordinator --tag $(IMAGE) --arch $(ARCH) --out dist/refit-coordinator-$(ARCH).tar

.PHONY: image-agent
image-agent: ## The image AGENT_IMAGE of agent and executor, for the agents' DaemonSet
	GOARCH=$(ARCH) go build -ldflags '$(LDFLAGS)' -o dist/linux-$(ARCH)/ ./cmd/refit-agent ./cmd/refit-executor
	go run ./hack/image --program dist/linux-$(ARCH)/refit-agent,dist/linux-$(ARCH)/refit-executor --user 0:0 --tag $(AGENT_IMAGE) --arch $(ARCH) --out dist/refit-agent-$(ARCH).tar

.PHONY: packages
packages: ## The agent as .deb and .rpm for ARCH, in dist/packages
	GOOS=linux GOARCH=$(ARCH) go build -ldflags '$(LDFLAGS)' -o $(BUILT)/linux-$(ARCH)/ ./cmd/refit-agent ./cmd/refit-executor
	mkdir -p dist/packages
	$(MAKE_RELEASE) -out $(CURDIR)/dist/packages -packages $(ARCH)

.PHONY: release
release: ## Everything of release VERSION in dist/release: packages, archives, images, manifests, chart, SBOM, SHA256SUMS
	rm -rf $(RELEASE) $(BUILT) && mkdir -p $(RELEASE)
	for arch in amd64 arm64; do $(MAKE) --no-print-directory release-linux ARCH=$$arch VERSION=$(VERSION) || exit; done
	for p in $(DESKS); do GOOS=$${p%-*} GOARCH=$${p#*-} go build -ldflags '$(LDFLAGS)' -o $(BUILT)/$$p/ ./cmd/kubectl-refit || exit; done
	$(RELEASED_CLI) install --coordinator-image $(IMAGE) --dry-run -o yaml >$(RELEASE)/install.yaml
	$(RELEASED_CLI) install --coordinator-image $(IMAGE) --agent daemonset --agent-image $(AGENT_IMAGE) --dry-run -o yaml >$(RELEASE)/install-daemonset.yaml
	$(MAKE_RELEASE) -out $(CURDIR)/$(RELEASE)

.PHONY: release-linux
release-linux:
	GOOS=linux GOARCH=$(ARCH) go build -ldflags '$(LDFLAGS)' -o $(BUILT)/linux-$(ARCH)/ $(addprefix ./cmd/,$(PROGRAMS))
	go run ./hack/image --program $(BUILT)/linux-$(ARCH)/refit-coordinator --tag $(IMAGE) --arch $(ARCH) --out $(RELEASE)/refit-coordinator_$(VERSION)_linux_$(ARCH).tar
	go run ./hack/image --program $(BUILT)/linux-$(ARCH)/refit-agent,$(BUILT)/linux-$(ARCH)/refit-executor --user 0:0 --tag $(AGENT_IMAGE) --arch $(ARCH) --out $(RELEASE)/refit-agent_$(VERSION)_linux_$(ARCH).tar

.PHONY: verify-release
verify-release: ## Check dist/release against its digests, then build VERSION again from a clone, from nothing, and compare
	cd hack/release && go run . -check $(CURDIR)/$(RELEASE)
	hack/verify-release $(VERSION) $(RELEASE)

.PHONY: fleet
fleet: ## Build the test fleet's program and the demo
	go build -o $(BIN)/fleet ./test/fleet
	go build -o $(BIN)/refit-demo ./test/demo

.PHONY: clean
clean: ## Remove what was built in the checkout (caches outside it stay)
	rm -rf $(BIN) dist

##@ Tests
.PHONY: artefacts
artefacts: fleet ## Make what fleets and API tests are made of: Kubernetes, etcd, containerd, images, repositories
	$(BIN)/fleet artefacts

.PHONY: test-unit
test-unit: artefacts ## Unit tests with the race detector
	CGO_ENABLED=1 go test -race -timeout 25m $$(go list ./... | grep -v /test/integration | grep -v /test/scenario)

.PHONY: test-release
test-release: ## The release's own module: packages built twice, the chart linted and rendered by Helm, the SBOM held to its schema
	cd hack/release && go vet ./... && go test -timeout 25m ./...

.PHONY: test-api
test-api: artefacts ## Tests against a real API server and etcd
	REFIT_REQUIRE_API=1 go test -timeout 25m ./test/integration/...

.PHONY: test-fleet
test-fleet: build fleet ## The upgrade of a real fleet and the faults of a real host, asserted (as root)
	REFIT_FLEET=1 go test -v -count=1 -timeout 45m -p 1 ./test/scenario/... ./test/fault

.PHONY: e2e
e2e: build artefacts ## The long enumerations: every write of coordinator and executor, every artefact, whole fleets, the packages on a host, rollouts on a standby, ten idle minutes, ten minutes without an API server (as root)
	$(MAKE) --no-print-directory test-release
	REFIT_EXHAUSTIVE=1 go test -count=1 -timeout 60m ./coordinator/simulation/...
	REFIT_EXHAUSTIVE=1 go test -count=1 -timeout 60m ./agent/executor/...
	REFIT_FLEET_ARTEFACTS=1 REFIT_FLEET_COREDNS=1 go test -count=1 -timeout 60m ./test/fleet/artefacts
	REFIT_FLEET=1 REFIT_IDLE=10m REFIT_AWAY=10m REFIT_ROLLOUTS=1 REFIT_PODS=1 go test -v -count=1 -timeout 210m -p 1 ./test/fleet/testfleet ./test/scenario/...
	REFIT_PLANES=1 REFIT_MINORS=1 go test -v -count=1 -timeout 150m -run 'TestThreeControlPlanes|TestTwoMinors' ./test/scenario
	REFIT_MINORS=3 go test -v -count=1 -timeout 100m -run TestTwoMinors ./test/scenario
	REFIT_FLEET=1 REFIT_EXHAUSTIVE=1 go test -v -count=1 -timeout 120m ./test/fault
	REFIT_FLEET=1 go test -v -count=1 -timeout 30m ./test/packaged

SCHEDULES ?= 10000
.PHONY: model
model: ## SCHEDULES (default 10000) random fleets with faults and interleavings, judged by an observer of its own
	REFIT_SCHEDULES=$(SCHEDULES) go test -v -count=1 -timeout 60m -run TestNoScheduleOfFaultsBreaksARule ./coordinator/simulation

.PHONY: scale
scale: artefacts ## What grows with the fleet, and drains beside kubectl's: tables of time, requests and memory, against a peer in the same run (REFIT_SCALE_MACHINES, _SLOTS, _FOR, _PROFILE)
	REFIT_SCALE=1 REFIT_REQUIRE_API=1 go test -v -count=1 -timeout 60m ./test/scale

.PHONY: fuzz
fuzz: ## Every fuzz target, or those that match FUZZ, for FUZZTIME (default 1m) each
	FUZZTIME=$(FUZZTIME) FUZZ_PARALLEL=$(FUZZ_PARALLEL) hack/fuzz $(FUZZ)

.PHONY: golden
golden: ## Rewrite the golden files; read the diff
	UPDATE_GOLDEN=1 go test ./cli/... ./coordinator/... ./pkg/...

##@ Generated files and checks
.PHONY: screenshots
screenshots: ## The pictures of docs/images, by a real Chromium (apt-get install chromium), and what it measured
	go run ./test/screenshots --out docs/images

.PHONY: generate
generate: generate-deepcopy generate-crds generate-rbac generate-chart ## Regenerate everything that is generated

.PHONY: generate-deepcopy
generate-deepcopy: ## Deep copies of the API types
	go tool controller-gen object paths=./api/...

.PHONY: generate-crds
generate-crds: ## CustomResourceDefinitions
	go tool controller-gen crd paths=./api/... output:crd:dir=deploy/crds

.PHONY: generate-rbac
generate-rbac: ## The coordinator's roles, from the markers next to the code that needs them
	go tool controller-gen rbac:roleName=refit-coordinator paths=./coordinator/... paths=./pkg/drain/... output:rbac:dir=deploy/coordinator/rbac

.PHONY: generate-chart
generate-chart: generate-crds generate-rbac ## The Helm chart, from the plain manifests
	go run ./hack/chart

.PHONY: verify
verify: verify-generate verify-tidy verify-format ## Check that generated files, go.mod and formatting are up to date

.PHONY: verify-generate
verify-generate: ## Generated files are what the generators write
	hack/verify-clean make --no-print-directory generate

.PHONY: verify-tidy
verify-tidy: ## go.mod and go.sum are tidy
	go mod tidy -diff
	cd hack/release && go mod tidy -diff

.PHONY: verify-format
verify-format: ## Go files are gofmt-clean
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not gofmt-clean: $$out"; exit 1; }

.PHONY: lint
lint: $(LINT) lint-scripts ## Linters, import rules included
	$(LINT) run ./...

.PHONY: lint-scripts
lint-scripts: ## Scripts, the Vagrantfile and the alerts, by those tools that are installed
	hack/lint-scripts

.PHONY: vulncheck
vulncheck: $(VULN) ## Known vulnerabilities in what is linked (needs the vulnerability database)
	hack/vulncheck $(VULN)

##@ Tools
.PHONY: deps
deps: ## Install the Debian packages that the fleet and the tests need
	hack/install-deps

$(LINT):
	GOBIN=$(dir $@) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(VULN):
	GOBIN=$(dir $@) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
