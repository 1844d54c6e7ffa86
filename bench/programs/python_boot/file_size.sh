#!/bin/sh
# Runs COMMAND, which may write to the file at PATH, and prints how many kilobytes of disk that file takes.
#
#   file_size.sh PATH [COMMAND...]
set -eu
path=$1
shift
[ $# = 0 ] || "$@" >/dev/null
du -B1 "$path" | awk '{ print $1 / 1000 }'
