#!/bin/sh
# Runs the Ruby front end's tests and the behaviour table on another Debian, with its Ruby, its Python and its C library.
#
#   make build && tools/debian.sh trixie     Debian 13: Ruby 3.3, Python 3.13, glibc 2.41
#   tools/debian.sh trixie -k native         what follows goes to pytest
#
# Needs root, debootstrap and the network. The system is made once, as .work/debian/SUITE; DEBIAN_MIRROR says where from,
# if not from where debootstrap looks by itself. Cases that need packages which cannot be had there are skipped.
set -eu

suite=${1:?usage: tools/debian.sh SUITE [PYTEST-ARGUMENT...], such as tools/debian.sh trixie}
shift
tree=$(cd "$(dirname "$0")/.." && pwd -P)
system=$tree/.work/debian/$suite

if [ ! -e "$system/ready" ]; then
    mkdir -p "$system"
    packages=ca-certificates,procps,python3-pytest,python3-venv,ruby,ruby-minitest
    debootstrap --variant=minbase --include=$packages "$suite" "$system" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
    mkdir -p "$system$tree"
    touch "$system/ready"
fi
cp /etc/resolv.conf "$system/etc/resolv.conf"

# The mounts end with the namespace. The tree's own .work, made for this system, stays out of it.
# shellcheck disable=SC2016 # expanded inside
exec unshare --mount --propagation private sh -euc '
    system=$1 tree=$2
    shift 2
    for directory in /proc /dev /sys; do mount --rbind $directory "$system$directory"; done
    mount --bind "$tree" "$system$tree"
    mount -t tmpfs work "$system$tree/.work"
    exec chroot "$system" env --default-signal -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root LANG=C.UTF-8 TERM=xterm \
        SNAPBOOT="$tree/target/release/snapboot" sh -euc "
        cd \"\$0\"
        ruby --version; python3 --version; ldd --version | head -n 1
        ruby tests/ruby/all.rb
        python3 -m pytest -q -p no:cacheprovider tests/behaviour/test_behaviour.py \"\$@\"" "$tree" "$@"
' sh "$system" "$tree" "$@"
