#!/usr/bin/env bash
# Fuzzes the readers of images and boot archives: fuzz.sh CASES SECONDS. First CASES damaged heads and tables, and a tenth as
# many damaged archives, with the drivers of crates/image-writer/tests/fuzz and crates/archive/tests, which any toolchain builds;
# then every target of fuzz/ for SECONDS with cargo-fuzz, where that and a nightly toolchain are there.
set -euo pipefail
cd "$(dirname "$0")/.."
cases=$1 seconds=$2
cargo=${CARGO:-cargo}

# Another seed each time, which a failure names. Optimised, with the checks of a debug build: an overflow is a failure.
export CARGO_PROFILE_DEV_OPT_LEVEL=3 CARGO_TARGET_DIR=target/fuzz
FUZZ_SEED=${FUZZ_SEED:-$(date +%s)} FUZZ_CASES=$cases FUZZ_CORPUS=$PWD/fuzz/corpus/image \
  "$cargo" test --package snapboot-image-writer --test fuzz -- --nocapture
FUZZ_SEED=${FUZZ_SEED:-$(date +%s)} FUZZ_CASES=$((cases / 10)) FUZZ_CORPUS=$PWD/fuzz/corpus/archive \
  "$cargo" test --package snapboot-archive --test fuzz -- --nocapture
unset CARGO_PROFILE_DEV_OPT_LEVEL CARGO_TARGET_DIR

if ! command -v cargo-fuzz >/dev/null || ! cargo +nightly --version >/dev/null 2>&1; then
  echo "cargo-fuzz skipped: it needs cargo-fuzz (cargo install cargo-fuzz) and a nightly toolchain"
  exit 0
fi
for target in $(cargo +nightly fuzz list); do
  cargo +nightly fuzz run "$target" -- -max_total_time="$seconds"
done
