# Builds, tests, measures and installs Snapboot. Each target does its own set-up, under target/ and .work/ only; what has
# to come from Debian's packages is installed where that is allowed, and named where it is not.
#
#   make            the release build                 make demo     four programs thawed, one with an archive
#   make test       every test suite                  make bench    all scenarios, the tables of docs/benchmarks.md (PLANS=cold-boot: some)
#   make test-all   all that make test runs a sample of, too: hours
#   make lint       the style checks                  make fuzz     damaged images, CASES=1000000
#   make agreement  compares what `snapboot explain` says with independent measures, for three programs
#   make stories    follows the advice of `snapboot explain` for three programs, writes docs/stories.md
#   make edits      edits projects of Django, pytest and Rails 100 times each, and starts them (PROJECTS=rails: some)
#   make half-hour  types what a new user types in enabled environments of Python and Ruby, compares and measures it (THINGS='python black': some)
#   make check-aarch64  type-checks all crates for aarch64
#   make test-aarch64  images on aarch64: cross-compiled, and tried on a machine that QEMU emulates (PROGRAMS=behaves.rb: some)
#   make contexts  how many everyday starts one image serves, of 30 programs in 26 contexts (PROGRAMS='jc yq': some)
#   make clean      removes target/ and .work/        make install PREFIX=/usr/local [DESTDIR=]
#   make containers builds, runs and measures the Dockerfiles of docs/containers.md
#   make kernels    images of this kernel under other ones, emulated, and the other way round (KERNELS=sid: some)
#   make runtimes   the behaviour table, CPython's and Ruby's own tests and the archive's cases on the runtimes of other Debians (SYSTEMS=sid: some)
#   make cpus       images for levels of CPUs on a dozen models, emulated (MODELS='EPYC Haswell': some)
#   make packages   a wheel and a gem in target/packages, each with everything in it (ARCHITECTURE=aarch64: for that one)
#   make uniqueness ten thousand thaws, no random value twice
#   make staleness  a thousand changes, no stale start
#   make faults     500 starts beside killed builders, full disks, removed and read-only stores: all right, and images are made again
#   make damage     ten thousand damaged archives, no wrong boot
#   make sweep      every feature of Ruby and of the installed gems, alone: no boot archive changes what comes of it (FEATURES='net/*': some;
#                   SWEEP_SECONDS=600: any, for so long)
#   make sweep-python  every module of Python's library and of the installed packages, imported alone: the same without that archive
#                   (MODULES='xml.*': some)
#   make modules    every module of Python's library, preloaded alone: an image shows what an ordinary start shows (MODULES='xml.*': some)
#   make strangers  programs that no other test knows, installed, frozen and started: all is as without an image (PROGRAMS=httpie: some)

PYTHON ?= python3
CARGO ?= cargo
PREFIX ?= /usr/local
CASES ?= 1000000
SECONDS ?= 60
N ?= 20
PLANS ?= scenarios cold-boot python-boot models

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: build test test-all demo bench agreement stories edits half-hour contexts lint fuzz install install-built packages containers clean toolchain uniqueness staleness faults damage sweep sweep-python modules strangers kernels cpus runtimes check-aarch64 test-aarch64

# Each start by `snapboot run` goes through the command, and each of an enabled environment through the entry. They take half the time to
# start when they are linked statically. What else there is becomes part of other processes.
static := $(if $(findstring /,$(shell cc -print-file-name=libc.a)),-C target-feature=+crt-static -C relocation-model=static)

build: toolchain
	$(CARGO) build --release --workspace --exclude snapboot-cli --exclude snapboot-entry --exclude snapboot-remote
	$(CARGO) rustc --release --package snapboot-cli --bin snapboot -- $(static)
	$(CARGO) rustc --release --package snapboot-entry --bin snapboot-entry -- $(static) -C strip=symbols
	$(CARGO) rustc --release --package snapboot-remote --bin snapboot-remote -- $(static) -C strip=symbols

toolchain:
	@tools/toolchain.sh $(CARGO) $(PYTHON)

test: build
	$(PYTHON) tools/run_tests.py

test-all: build
	SNAPBOOT_ALL_TESTS=1 SNAPBOOT_RUBIES=all SNAPBOOT_PYTHONS=all SNAPBOOT_SWEEP=all RUNTIME_TESTS=all $(PYTHON) tools/run_tests.py

demo: build
	@$(PYTHON) tools/demo.py

bench: build
	for plan in $(PLANS); do $(PYTHON) bench/run.py --plan $$plan -n $(N); done
	$(PYTHON) bench/report.py --write

agreement: build
	$(PYTHON) bench/agreement.py

edits: build
	$(PYTHON) bench/edits.py $(PROJECTS)

half-hour: build
	$(PYTHON) bench/half_hour.py $(THINGS)
	$(PYTHON) bench/report.py --write

stories: build
	$(PYTHON) bench/stories.py -n $(N)

contexts: build
	$(PYTHON) bench/contexts.py $(if $(PROGRAMS),--only $(PROGRAMS))

lint: toolchain
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(PYTHON) tools/lint.py

# Nothing is linked, so any C compiler does for what is compiled from C, and optimising that would take most of the time. snapboot-remote has
# libraries with assembly, which takes the cross compiler of test-aarch64.
check-aarch64: toolchain
	@[ -d "$$(rustc --print target-libdir --target aarch64-unknown-linux-gnu)" ] || rustup target add aarch64-unknown-linux-gnu
	CC_aarch64_unknown_linux_gnu=cc CFLAGS_aarch64_unknown_linux_gnu=-O0 $(CARGO) check --workspace --exclude snapboot-remote --target aarch64-unknown-linux-gnu

# Its packages have the manual and the completions, which the command of this machine writes.
test-aarch64: build
	$(PYTHON) tools/aarch64.py $(PROGRAMS)

# Of each of six programs.
uniqueness: build
	SNAPBOOT_THAWS=1667 $(PYTHON) tools/run_tests.py python -- tests/images/test_uniqueness.py

# About 500 starts.
faults: build
	SNAPBOOT_FAULT_ROUNDS=14 $(PYTHON) tools/run_tests.py python -- tests/store/test_faults.py

# Of each of two programs that are thawed, and of three that boot with an archive.
staleness: build
	SNAPBOOT_STEPS=1000 $(PYTHON) tools/run_tests.py python -- tests/staleness/test_changes.py tests/archive/boots/test_changes.py

damage: build
	SNAPBOOT_DAMAGES=10000 $(PYTHON) tools/run_tests.py python -- tests/archive/boots/test_damage.py

sweep: build
	$(PYTHON) tests/sweep/sweep.py $(if $(SWEEP_SECONDS),--seconds $(SWEEP_SECONDS)) $(FEATURES)

sweep-python: build
	$(PYTHON) tests/sweep/imports.py $(MODULES)

modules: build
	$(PYTHON) tests/sweep/modules.py $(MODULES)

kernels: build
	$(PYTHON) tools/kernels.py $(KERNELS)

cpus: build
	$(PYTHON) tools/cpus.py $(MODELS)

runtimes: build
	$(PYTHON) tools/try_runtimes.py $(SYSTEMS)

strangers: build
	$(PYTHON) tests/strangers/strangers.py $(PROGRAMS)

fuzz: toolchain
	tools/fuzz.sh $(CASES) $(SECONDS)

# What is installed, by default for this machine's architecture; and of it what is linked against the C library dynamically, by default against
# this machine's.
BUILT ?= target/release
LINKED ?= $(BUILT)
library := $(abspath $(DESTDIR)$(PREFIX))/libexec/snapboot
share := $(abspath $(DESTDIR)$(PREFIX))/share

install: build install-built
	$(PYTHON) tools/compiled.py $(library)/python

install-built:
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILT)/snapboot
	install -D -m 755 -t $(library) $(BUILT)/snapboot-launcher $(BUILT)/snapboot-entry $(BUILT)/snapboot-remote $(BUILT)/libsnapboot_freezer.so $(LINKED)/libsnapboot_ruby.so $(LINKED)/libsnapboot_python.so
	mkdir -p $(addprefix $(share)/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	target/release/snapboot manual $(share)/man/man1
	target/release/snapboot completion bash > $(share)/bash-completion/completions/snapboot
	target/release/snapboot completion zsh > $(share)/zsh/site-functions/_snapboot
	target/release/snapboot completion fish > $(share)/fish/vendor_completions.d/snapboot.fish
	cd python && find snapboot '(' -name '*.py' -o -name '*.pyi' -o -name py.typed ')' -exec install -D -m 644 {} $(library)/python/{} \;
	cd ruby && find lib -name '*.rb' -exec install -D -m 644 {} $(library)/ruby/{} \;
	$(PYTHON) tools/parts.py $(library)

# The Dockerfiles of docs/containers.md, built and run with podman, and how long the containers take to start.
containers: build
	$(PYTHON) tools/containers.py
	SNAPBOOT_CONTAINERS=all $(PYTHON) tools/run_tests.py python -- tests/packages/test_containers.py
	$(PYTHON) bench/container_starts.py
	$(PYTHON) bench/report.py --write

# A wheel and a gem, each with everything in it, in target/packages (ARCHITECTURE=aarch64: for that one).
packages: build
	$(PYTHON) tools/packages.py $(if $(ARCHITECTURE),--architecture $(ARCHITECTURE))

clean:
	rm -rf target .work
