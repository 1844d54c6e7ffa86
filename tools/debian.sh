#!/bin/sh
# Runs tests on another Debian, with its Ruby, its Python and its C library; or any target of the Makefile as on a fresh machine.
#
#   make build && tools/debian.sh trixie     Debian 13: Ruby 3.3, Python 3.13, glibc 2.41; the Ruby tests and the behaviour table
#   tools/debian.sh sid                      Debian's development branch: Python 3.14 and 3.15, Ruby 3.3, and 3.4 from experimental
#   tools/debian.sh trixie -k native         what follows goes to pytest
#   tools/debian.sh sid run COMMAND...       a command in this tree, on that system; what it writes to .work stays in the system
#   tools/debian.sh bookworm make demo       a clone of HEAD on a system that has no more than README asks for
#
# Needs root, debootstrap and the network. A system is made once, in .work/debian or where DEBIAN_SYSTEM says; DEBIAN_MIRROR says where from,
# if not from where debootstrap looks by itself. DEBIAN_RUBY=3.1.2-7+deb12u1 makes one with that version of Debian's package ruby3.1.
# Cases that need packages which cannot be had there are skipped. Rust is this machine's.
set -eu

suite=${1:?usage: tools/debian.sh SUITE [PYTEST-ARGUMENT... | run COMMAND... | make TARGET...], such as tools/debian.sh trixie}
if [ -z "${OWN_MOUNTS-}" ]; then # they end with this script
    OWN_MOUNTS=1 exec unshare --mount --propagation private "$0" "$@"
fi
shift
tree=$(cd "$(dirname "$0")/.." && pwd -P)
if [ "${1-}" = make ]; then
    kind=fresh packages=ca-certificates,gcc,libc6-dev,make,git,python3
else
    kind=tests packages=ca-certificates,procps,python3-pytest,python3-venv,ruby,ruby-minitest
fi
system=${DEBIAN_SYSTEM:-$tree/.work/debian/$suite-$kind${DEBIAN_RUBY:+-ruby-$DEBIAN_RUBY}}

if [ ! -e "$system/ready" ]; then
    mkdir -p "$system"
    debootstrap --variant=minbase --include=$packages "$suite" "$system" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
    mirror=$(sed -n 's/^deb \([^ ]*\) .*/\1/p;q' "$system/etc/apt/sources.list") # where debootstrap has found it
    printf 'deb %s main\n' "$mirror $suite" > "$system/etc/apt/sources.list"
    if [ "$suite" = sid ]; then # nothing is installed from experimental but what is only there
        printf 'deb %s main\n' "$mirror experimental" >> "$system/etc/apt/sources.list"
    else
        printf 'deb %s main\n' "$mirror $suite-updates" "$mirror-security $suite-security" >> "$system/etc/apt/sources.list"
    fi
    if [ -n "${DEBIAN_RUBY-}" ]; then
        printf 'Package: %s\nPin: version %s\nPin-Priority: 1001\n' '/^(lib)?ruby3\.[0-9]+(-dev)?$/' "$DEBIAN_RUBY" > "$system/etc/apt/preferences.d/ruby"
    fi
    # Certificates and package registries, as this machine has them.
    find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$system/usr/local/share/ca-certificates" {} +
    chroot "$system" update-ca-certificates
    if [ -e /etc/pip.conf ]; then cp /etc/pip.conf "$system/etc/"; fi
    touch "$system/ready"
fi
for name in resolv.conf hosts; do # a program that freezes there meanwhile may have read them
    cmp -s /etc/$name "$system/etc/$name" || cp /etc/$name "$system/etc/"
done
# Where this machine takes lists of packages that have expired, as those of a snapshot have.
apt-config dump | grep '^Acquire::Check-Valid-Until' > "$system/etc/apt/apt.conf.d/90-as-outside" || true
mount --bind "$system" "$system" # its root is a mount point then, which tools/snapshot.py needs
for directory in /proc /dev /sys; do mount --rbind $directory "$system$directory"; done

# Runs a command there.
inside() {
    chroot "$system" env --default-signal -i PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LANG=C.UTF-8 TERM=xterm ${CI:+CI="$CI"} "$@"
}

if [ $kind = fresh ]; then
    for name in .cargo .rustup; do
        mkdir -p "$system/root/$name"
        mount --rbind "$HOME/$name" "$system/root/$name"
    done
    rm -rf "$system/srv/snapboot" # where any user can reach it, as some tests want
    git clone -q --no-hardlinks "$tree" "$system/srv/snapboot"
    shift
    inside make -C /srv/snapboot "$@"
    exit
fi

mkdir -p "$system$tree" "$tree/.work"
mount --bind "$tree" "$system$tree"
work=$system$(readlink -f "$tree/.work") # it may be a link
mkdir -p "$work"
if [ "${1-}" = run ]; then
    shift
    # What is set up there, such as virtual environments, serves the next command.
    mkdir -p "$system/srv/work"
    mount --bind "$system/srv/work" "$work"
    inside SNAPBOOT="$tree/target/release/snapboot" env --chdir="$tree" "$@"
else
    # The tree's own .work, made for this system, stays out of it.
    mount -t tmpfs work "$work"
    # shellcheck disable=SC2016 # expanded inside
    inside SNAPBOOT="$tree/target/release/snapboot" sh -euc '
        cd "$0"
        ruby --version; python3 --version; ldd --version | head -n 1
        ruby tests/ruby/all.rb
        python3 -m pytest -q -p no:cacheprovider tests/behaviour/test_behaviour.py "$@"' "$tree" "$@"
fi
