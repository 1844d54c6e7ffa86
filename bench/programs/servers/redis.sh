#!/bin/sh
# A Redis that listens at the socket $1 alone, keeps nothing and lives as long as its input is open. Says `ready`.
redis-server --port 0 --unixsocket "$1" --save "" --dir "${1%/*}" > "$1.log" &
redis=$!
until [ -S "$1" ]; do sleep 0.01; done
echo ready
cat > "$1.rest"
kill $redis
