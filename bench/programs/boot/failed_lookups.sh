#!/bin/sh
# Runs COMMAND under STRACE and prints how many of its look-ups of names below FOLDER found nothing.
#
#   failed_lookups.sh STRACE FOLDER COMMAND...
set -eu
strace=$1 folder=$(realpath "$2")
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$strace" -f -qq --seccomp-bpf -Z -e trace=%file,%%stat -e signal=none -o "$log" "$@" >/dev/null
grep -F "\"$folder/" "$log" | grep -c "= -1 ENOENT" || true
