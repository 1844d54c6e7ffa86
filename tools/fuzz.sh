#!/usr/bin/env bash
# Runs every fuzz target of fuzz/ for a while: fuzz.sh SECONDS. Needs cargo-fuzz and a nightly toolchain; without them it
# says so and ends well, since fuzzing is no part of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1

if ! command -v cargo-fuzz >/dev/null || ! cargo +nightly --version >/dev/null 2>&1; then
  echo "fuzzing skipped: it needs cargo-fuzz (cargo install cargo-fuzz) and a nightly toolchain"
  exit 0
fi
for target in $(cargo +nightly fuzz list); do
  cargo +nightly fuzz run "$target" -- -max_total_time="$seconds"
done
