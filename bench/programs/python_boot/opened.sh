#!/bin/sh
# Prints how many milliseconds of CPU PYTHON takes to open an archive that holds the web trio: ARCHIVE, of code-data-share, or that which
# it has been given for Snapboot, which an import of the trio adds to first.
#
#   opened.sh PYTHON [ARCHIVE]
set -eu
[ $# -gt 1 ] || "$1" -c "import flask, requests, pymongo"
python=$1
shift
exec "$python" "${0%/*}/opened.py" "$@"
