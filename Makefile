# The commands of the house. `make` or `make help` lists them; what they do in detail is in xtask/.
# Each installs what it needs first (scripts/setup), and does nothing twice.

CARGO ?= cargo
PHPUNIT ?= phpunit

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 10

build: ## the binary: target/release/pagewell
	@scripts/setup build
	$(CARGO) build --release -p pagewell

demo: ## the example site on http://127.0.0.1:8080, with a database of its own, until Ctrl-C
	@scripts/setup demo
	@$(CARGO) xtask demo

test: ## everything: format, lints, unit, property and model tests, scenarios, interop, PHP
	@scripts/setup test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) test --workspace
	$(CARGO) xtask tidy
	$(PHPUNIT) --configuration php/client
	$(CARGO) xtask demo --check --dev

bench: ## hits of the news page beside nginx's fastcgi_cache: server CPU for each
	@scripts/setup bench
	$(CARGO) build --release -p pagewell -p xtask
	$(CARGO) run --quiet --release -p xtask -- bench hit

fmt: ## formats the Rust sources
	$(CARGO) fmt --all

lint: ## the lints and the rules of the house
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) xtask tidy

setup: ## installs what the tests need
	@scripts/setup test

clean: ## removes what was built
	$(CARGO) clean

.PHONY: help build demo test bench fmt lint setup clean
.DEFAULT_GOAL := help
