# Commands for development. `make` or `make help` lists them; the details are in xtask/ and tools/.
# Each installs its requirements first (scripts/setup).

CARGO ?= cargo
PHPUNIT ?= phpunit
# It notes the tests that it skips.
RUN_PHPUNIT = scripts/phpunit $(PHPUNIT)
# The suites of php/phpunit.xml but those of WordPress, which take longer than all others together.
PHP_SUITES = packages,core,client,bridge,drupal,laravel,mediawiki,symfony
# The suites that `make trial` runs with further visitors, whose answers are compared (php/tests/Support/TrialVisitors.php).
UNDER_TRIAL = WordPressPagesTest|WordPressShopTest|FrameworksBehindTest|MediaWikiTest|DrupalSiteTest
# Scenario tests set the clock of the binary.
FEATURES = --features pagewell/settable-clock
# The acceptance tests by their names: with `-p acceptance`, libraries would have other features.
ACCEPTANCE = crates/testing/acceptance/tests
SERVER_TESTS = $(patsubst %,--test %,$(notdir $(basename $(wildcard $(ACCEPTANCE)/*.rs)) $(patsubst %/main.rs,%,$(wildcard $(ACCEPTANCE)/*/main.rs))))
# The model checker is a feature of the store. With --workspace, the libraries are those of the tests.
MODEL = $(CARGO) test --workspace --features

# The tasks after the tests use the binaries that were built for the tests.
BUILT = $(abspath $(or $(CARGO_TARGET_DIR),target))/debug
TASK = PAGEWELL_BIN=$(BUILT)/pagewell $(BUILT)
# The demo has a build of its own, that compiles in a third of the time (Cargo.toml). Its threads have stacks of 32 MB.
QUICK = $(dir $(BUILT))quick
START_DEMO = PAGEWELL_BIN=$(QUICK)/pagewell RUST_MIN_STACK=33554432 $(QUICK)/xtask demo
# Another target of this file. Where a line names MAKE itself, `make -n` executes the line.
TARGET = $(MAKE) --no-print-directory
# The tests that were skipped, of Rust and PHP.
SHOW_SKIPPED = [ ! -s $(PAGEWELL_SKIPPED) ] || { echo "== skipped tests: $$(wc -l <$(PAGEWELL_SKIPPED))"; cat $(PAGEWELL_SKIPPED); }
# A step with its name and its time.
PHASE = PAGEWELL_BIN=$(BUILT)/pagewell scripts/phase

# Notes for later builds (incremental compilation) take a fifth of a first build. A checkout gets them with the first
# build that cargo runs by itself.
export CARGO_INCREMENTAL ?= $(if $(wildcard $(BUILT)/incremental/*),1,0)
# Without notes, each crate is compiled in one piece: several are optimised apart, and once more together.
ifeq ($(CARGO_INCREMENTAL),0)
export CARGO_PROFILE_DEV_CODEGEN_UNITS ?= 1
endif

# `make test` draws its random cases from one seed, so that two runs have the same result. `make fuzz` draws others.
export PROPTEST_RNG_SEED ?= 1
# Most tests wait for servers, so there is one more at a time than there are processors.
TEST_THREADS = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# What all targets with tests build, with the same features, so that nothing is built twice.
BUILD_TESTS = $(CARGO) test --no-run --workspace $(FEATURES)
# The duration of `make fuzz` for each target, and its seed; the duration of `make soak`.
SECONDS = 60
soak: SECONDS = 3600
SEED = 1
# The number of random cases of `make fuzz` for each property.
CASES = 5000
# The cases of `make bench`; `cargo measure --help` lists them.
BENCH = all

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

build: ## build the binary: target/release/pagewell
	@scripts/setup build
	$(CARGO) build --release -p pagewell

demo: ## serve the example site on http://127.0.0.1:8080 until Ctrl-C (HTTPS=1: with HTTPS, too)
	@scripts/phase "1 of 3: packages" scripts/setup demo
	@scripts/phase "2 of 3: build" $(CARGO) build --profile quick --package pagewell --package xtask $(FEATURES)
	@echo "== 3 of 3: start" >&2
	@$(START_DEMO) $(if $(HTTPS),--https)

test: export PAGEWELL_SKIPPED = $(BUILT)/skipped-tests
test: ## run all tests: format, lints, unit, property and model tests, scenarios, real servers, PHP
	@scripts/phase --table "make test" $(TARGET) test-phases

# Packages are fetched and unpacked while cargo compiles, which needs a C compiler and Rust alone.
test-phases:
	@scripts/setup build
	@rm -f $(PAGEWELL_SKIPPED)
	$(CARGO) fmt --all --check
	rustfmt --edition 2024 --check fuzz/fuzz_targets/*.rs
	@scripts/beside --together scripts/phase "packages" scripts/setup test \
		-- scripts/phase "build" $(BUILD_TESTS)
	$(TASK)/xtask tidy
	@PAGEWELL_BIN=$(BUILT)/pagewell scripts/beside $(TARGET) server-tests -- $(TARGET) --keep-going php crate-tests \
		-- $(TARGET) php-pages -- $(TARGET) further-tests
	@$(SHOW_SKIPPED)

# Tests that wait for servers most of the time run beside others that keep the processor busy.
server-tests:
	@scripts/phase "tests with servers" env RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --workspace $(FEATURES) $(SERVER_TESTS)

crate-tests:
	@scripts/phase "tests of the crates" env RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --workspace --exclude acceptance $(FEATURES)

php:
	@scripts/phase "php: WordPress" $(RUN_PHPUNIT) --configuration php --testsuite wordpress

php-pages:
	@scripts/phase "php: pages of WordPress" $(RUN_PHPUNIT) --configuration php --testsuite wordpress-pages
	@scripts/phase "php: other packages" $(RUN_PHPUNIT) --configuration php --testsuite $(PHP_SUITES)
	@scripts/phase "examples/news" $(RUN_PHPUNIT) --configuration examples/news

further-tests:
	@scripts/phase "lints" $(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings
	@$(PHASE) "deployment files" scripts/check-deployments --offline
	@scripts/phase "model" $(TARGET) model
	@$(PHASE) "demo" $(BUILT)/xtask demo --check --https
	@$(PHASE) "torture" $(BUILT)/torture --short
	@$(PHASE) "soak" $(BUILT)/soak --short
	@$(PHASE) "soak of sources" $(BUILT)/soak --sources --short

model: ## run the store under the model checker; without its lease check each model must find an old page
	$(MODEL) page-store/loom --test loom
	$(MODEL) page-store/loom,page-store/without-lease-check --test loom
	$(MODEL) page-store/without-lease-check --test model --test random

acme: ## kill holders of locks while they order certificates, 200 times for each storage; time the first HTTPS
	@scripts/setup test
	$(BUILD_TESTS)
	ACME_RUNS=200 $(CARGO) test --workspace $(FEATURES) --lib killed_holders -- --nocapture
	PAGEWELL_BIN=$(BUILT)/pagewell $(CARGO) test --workspace $(FEATURES) --test operations https_works -- --nocapture

fuzz: ## fuzz every parser: SECONDS for each, then CASES of each property, from SEED
	$(CARGO) run --profile fuzz -p fuzz-targets -- all --seconds $(SECONDS) --seed $(SEED)
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=$(CASES) $(CARGO) test --workspace $(FEATURES) --exclude pagewell --exclude acceptance --exclude xtask --exclude bench --exclude torture --exclude soak --exclude fuzz-targets

soak: ## run the soak test: faults of everything around Pagewell, under load, for SECONDS (3600)
	@scripts/setup test
	$(CARGO) build --release -p pagewell -p soak
	$(CARGO) run --quiet --release -p soak -- --sources
	$(CARGO) run --quiet --release -p soak -- --seconds $(SECONDS)

trial: export PAGEWELL_SKIPPED = $(BUILT)/skipped-tests
trial: ## run the gallery of small applications (tests/audit/gallery.txt) and the suites of real ones under trial
	@scripts/setup test
	@rm -f $(PAGEWELL_SKIPPED)
	$(BUILD_TESTS)
	PAGEWELL_BIN=$(BUILT)/pagewell $(CARGO) test --workspace $(FEATURES) --test http -- --ignored --nocapture trial::
	PAGEWELL_TRIAL=100% PAGEWELL_BIN=$(BUILT)/pagewell $(CARGO) test --workspace $(FEATURES) --test applications -- --nocapture automatic mediawiki
	PAGEWELL_TRIAL=100% PAGEWELL_BIN=$(BUILT)/pagewell $(RUN_PHPUNIT) --configuration php --filter '$(UNDER_TRIAL)'
	PAGEWELL_TRIAL=default PAGEWELL_BIN=$(BUILT)/pagewell $(RUN_PHPUNIT) --configuration php --filter WordPressShopTest
	@$(SHOW_SKIPPED)

audit: ## the whole gallery of the audit; 100,000 comparisons at 5, 50 and 400 writes a second each; 5,000 with a database
	@scripts/setup test
	$(BUILD_TESTS)
	AUDIT_GALLERY=all PAGEWELL_BIN=$(BUILT)/pagewell $(CARGO) test --workspace $(FEATURES) --test http -- --nocapture audit
	PAGEWELL_BIN=$(BUILT)/pagewell $(BUILT)/torture --audited 100000 --seconds 3600
	PAGEWELL_BIN=$(BUILT)/pagewell $(BUILT)/torture --audited 5000 --seconds 900 --database
	PAGEWELL_BIN=$(BUILT)/pagewell $(BUILT)/torture --audited 1 --without-lease-check

bench: ## measure the figures of the manual beside other servers (BENCH="o1 tls" for some)
	@scripts/setup bench
	$(CARGO) build --release -p pagewell -p bench
	$(CARGO) run --quiet --release -p bench -- $(BENCH)

compat: ## test with the servers and PHP of Debian 13 and unstable (as root; 10 GB, 45 minutes)
	@scripts/compat

package: ## build the Debian packages (target/package/*.deb) and the zip archives of the plugins
	@scripts/phase "tools" scripts/setup package
	@scripts/phase "build" $(CARGO) build --release -p pagewell
	@scripts/phase "packages" $(CARGO) xtask package

dist: ## build a release in target/dist: archive for Linux with glibc 2.31, packages, bill of materials
	@scripts/phase "tools" scripts/setup dist
	@scripts/phase "release" $(CARGO) xtask dist

dist-musl: ## build only an archive for musl (Alpine) in target/dist (rustup target add x86_64-unknown-linux-musl)
	@scripts/phase "tools" scripts/setup dist
	@scripts/phase "release" $(CARGO) xtask dist --musl

# What is tried: the packages, and an archive with the same program (that of `make dist` is linked for other systems).
packages-to-test:
	@scripts/phase "tools" scripts/setup package
	@scripts/phase "build" $(CARGO) build --release -p pagewell
	@scripts/phase "archive" $(CARGO) xtask dist --program $(BUILT)/../release/pagewell
	@scripts/phase "packages" $(CARGO) xtask package

package-test: packages-to-test ## check the deployment files, try packages, archive and guides in Debian 12 and 13, build the container (as root)
	@PAGEWELL_BIN=$(BUILT)/../release/pagewell scripts/check-deployments
	@scripts/package-test

fmt: ## format the Rust sources
	$(CARGO) fmt --all
	rustfmt --edition 2024 fuzz/fuzz_targets/*.rs

lint: ## check lints, PHP coding standard, project rules, and the licences and advisories of libraries
	@scripts/setup lint
	$(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings
	$(CARGO) xtask tidy
	phpcs -q --standard=php/phpcs.xml.dist
	$(CARGO) deny --offline --locked check bans licenses sources
	@if $(CARGO) deny fetch db >/dev/null 2>&1; \
	then $(CARGO) deny --locked check --disable-fetch advisories; \
	else echo "lint: the list of advisories cannot be fetched; they are not checked"; fi

setup: ## install the requirements of the tests, and the commit hook
	@scripts/setup test
	@scripts/use-hooks

clean: ## remove the build products
	$(CARGO) clean

.PHONY: help build demo test test-phases server-tests crate-tests php php-pages further-tests model acme fuzz soak audit trial bench compat package dist dist-musl packages-to-test package-test fmt lint setup clean
.DEFAULT_GOAL := help
