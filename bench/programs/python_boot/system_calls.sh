#!/bin/sh
# Runs COMMAND under STRACE and prints how many system calls it makes, with its threads and children.
#
#   system_calls.sh STRACE COMMAND...
set -eu
strace=$1
shift
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
"$strace" -f -c -o "$counts" "$@" >/dev/null
awk '$NF == "total" { print $4 }' "$counts"
