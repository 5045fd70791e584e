# The commands of the house. `make` or `make help` lists them; what they do in detail is in xtask/ and tools/.
# Each installs what it needs first (scripts/setup), and does nothing twice.

CARGO ?= cargo
PHPUNIT ?= phpunit
# The stories set the clock of the binary they are told to.
FEATURES = --features pagewell/settable-clock
# The model checker is compiled in by a flag for the compiler, which would rebuild everything else.
LOOM = RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),target)/loom $(CARGO) test

# What was built for the tests is what the tasks after them use: nothing is built a second time.
BUILT = $(abspath $(or $(CARGO_TARGET_DIR),target))/debug
TASK = PAGEWELL_BIN=$(BUILT)/pagewell $(BUILT)
# A step with its name and its time.
PHASE = PAGEWELL_BIN=$(BUILT)/pagewell scripts/phase

# What decides whether a change lands must come out the same twice: `make test` draws its random
# cases from one seed. `make fuzz` is where new ones are looked for.
export PROPTEST_RNG_SEED ?= 1
# How long `make fuzz` takes for each target, and from where it starts; how long `make soak` takes.
SECONDS = 60
soak: SECONDS = 3600
SEED = 1
# How many random cases it draws for each property.
CASES = 5000
# Which cases `make bench` measures; `cargo measure --help` lists them.
BENCH = all

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

build: ## the binary: target/release/pagewell
	@scripts/setup build
	$(CARGO) build --release -p pagewell

demo: ## the example site on http://127.0.0.1:8080, with a database of its own, until Ctrl-C
	@scripts/phase "1 of 3: packages" scripts/setup demo
	@scripts/phase "2 of 3: build" $(CARGO) build --package pagewell --package xtask $(FEATURES)
	@echo "== 3 of 3: start" >&2
	@$(TASK)/xtask demo

test: ## everything: format, lints, unit, property and model tests, scenarios, interop, PHP
	@scripts/phase "packages" scripts/setup test
	$(CARGO) fmt --all --check
	rustfmt --edition 2024 --check fuzz/fuzz_targets/*.rs
	@scripts/phase "lints" $(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings
	@scripts/phase "build" $(CARGO) test --no-run --workspace $(FEATURES)
	$(TASK)/xtask tidy
	@scripts/beside $(PHASE) "tests" $(CARGO) test --workspace $(FEATURES) -- $(MAKE) --no-print-directory php
	@scripts/phase "model" $(MAKE) --no-print-directory model
	@$(PHASE) "demo" $(BUILT)/xtask demo --check
	@$(PHASE) "torture" $(BUILT)/torture --short
	@$(PHASE) "soak" $(BUILT)/soak --short
	@$(PHASE) "soak of sources" $(BUILT)/soak --sources --short

# Its suites wait for servers most of the time, so they run beside the tests of Rust.
php:
	@scripts/phase "php/client" $(PHPUNIT) --configuration php/client
	@scripts/phase "examples/news" $(PHPUNIT) --configuration examples/news

model: ## the store under the model checker; without its lease check each model must find a stale page
	$(LOOM) -p page-store --test loom
	$(LOOM) -p page-store --test loom --features without-lease-check
	$(CARGO) test -p page-store --test model --test random --features without-lease-check

fuzz: ## damaged input for every reader: SECONDS for each, then CASES of each property, from SEED
	$(CARGO) run --profile fuzz -p fuzz-targets -- all --seconds $(SECONDS) --seed $(SEED)
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=$(CASES) $(CARGO) test --workspace $(FEATURES) --exclude pagewell --exclude acceptance --exclude xtask --exclude bench --exclude torture --exclude soak --exclude fuzz-targets

soak: ## what honest visitors see while everything around them breaks, for SECONDS (an hour)
	@scripts/setup test
	$(CARGO) build --release -p pagewell -p soak
	$(CARGO) run --quiet --release -p soak -- --sources
	$(CARGO) run --quiet --release -p soak -- --seconds $(SECONDS)

bench: ## every figure of the manual, beside other servers (BENCH="o1 tls" for some of them)
	@scripts/setup bench
	$(CARGO) build --release -p pagewell -p bench
	$(CARGO) run --quiet --release -p bench -- $(BENCH)

compat: ## tests against the servers and PHP of Debian 13 and unstable, in private roots (as root; 10 GB, 45 minutes at most)
	@scripts/compat

package: ## packages for Debian (target/package/*.deb) and the plugins for WordPress and MediaWiki as zip archives
	@scripts/setup package
	@$(CARGO) xtask package

dist: ## the files of a release in target/dist: archive for every Linux with glibc 2.31, packages, bill of materials
	@scripts/setup dist
	@$(CARGO) xtask dist

package-test: package ## installs, upgrades and removes the packages in private Debian 12 and 13, builds the container (as root)
	@scripts/package-test

fmt: ## formats the Rust sources
	$(CARGO) fmt --all
	rustfmt --edition 2024 fuzz/fuzz_targets/*.rs

lint: ## the lints, the coding standard of PHP, the rules of the house, and the libraries: licences, sources, advisories
	@scripts/setup lint
	$(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings
	$(CARGO) xtask tidy
	phpcs -q --standard=php/phpcs.xml.dist
	$(CARGO) deny --offline --locked check bans licenses sources
	@if $(CARGO) deny fetch db >/dev/null 2>&1; \
	then $(CARGO) deny --locked check --disable-fetch advisories; \
	else echo "lint: the list of advisories cannot be fetched; they are not checked"; fi

setup: ## installs what the tests need, and has git check the messages of commits
	@scripts/setup test
	@scripts/use-hooks

clean: ## removes what was built
	$(CARGO) clean

.PHONY: help build demo test php model fuzz soak bench compat package dist package-test fmt lint setup clean
.DEFAULT_GOAL := help
