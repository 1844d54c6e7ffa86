#!/usr/bin/env bash
# Checks for what every target needs: toolchain.sh CARGO PYTHON. Installs a missing C linker where that is allowed (root
# or sudo without a password); says plainly what is missing and how to get it otherwise.
set -euo pipefail
cargo=$1 python=$2

missing() {
  printf 'snapboot cannot be built: %s is missing. %s\n' "$1" "$2" >&2
  exit 1
}

command -v "$cargo" >/dev/null || missing "$cargo" "Install Rust's stable toolchain (rustup, or your distribution's)."
command -v "$python" >/dev/null || missing "$python" "Install Python 3.11 or later, or say make PYTHON=..."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  missing "Python 3.11 or later" "$python is older; say make PYTHON=... (frozen programs may use any CPython from 3.8 on)."
command -v cc >/dev/null || command -v gcc >/dev/null || {
  if [ "$(id -u)" = 0 ]; then as_root=(); else as_root=(sudo -n); fi
  echo "installing a C compiler, which Rust needs to link" >&2
  { "${as_root[@]}" apt-get update -q && "${as_root[@]}" apt-get install -y -q gcc libc6-dev; } >/dev/null ||
    missing "a C compiler" "As root: apt-get install gcc libc6-dev"
}
