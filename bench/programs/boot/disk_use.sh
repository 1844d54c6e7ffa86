#!/bin/sh
# Runs COMMAND without what is at PATH, and prints how many megabytes of disk it has put there.
#
#   disk_use.sh PATH COMMAND...
set -eu
path=$1
shift
rm -rf "$path"
"$@" >/dev/null
du -s -B1 "$path" | awk '{ print $1 / 1e6 }'
