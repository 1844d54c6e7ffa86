#!/usr/bin/env bash
# Fuzzes the reader of images for a while: fuzz.sh SECONDS. First with the driver of crates/image/tests/fuzz, which any
# toolchain builds; then every target of fuzz/ with cargo-fuzz, where that and a nightly toolchain are there.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
cargo=${CARGO:-cargo}

# Another seed each time, which a failure names. Optimised, with the checks of a debug build: an overflow is a failure.
export CARGO_PROFILE_DEV_OPT_LEVEL=3 CARGO_TARGET_DIR=target/fuzz
FUZZ_SEED=${FUZZ_SEED:-$(date +%s)} FUZZ_SECONDS=$seconds FUZZ_CORPUS=$PWD/fuzz/corpus/image \
  "$cargo" test --package snapboot-image --test fuzz -- --nocapture
unset CARGO_PROFILE_DEV_OPT_LEVEL CARGO_TARGET_DIR

if ! command -v cargo-fuzz >/dev/null || ! cargo +nightly --version >/dev/null 2>&1; then
  echo "cargo-fuzz skipped: it needs cargo-fuzz (cargo install cargo-fuzz) and a nightly toolchain"
  exit 0
fi
for target in $(cargo +nightly fuzz list); do
  cargo +nightly fuzz run "$target" -- -max_total_time="$seconds"
done
