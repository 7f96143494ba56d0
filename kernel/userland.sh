#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the folder of the programs with which Linux's own tests run, and that compile them: packages
# of Debian's, unpacked into one root that a guest has in place of the host's. They are fetched once, by
# an apt that keeps all its state in that folder (source.sh), and changed by nothing: no root is needed.
#
#   userland.sh           fetches it, if it is not there
#   userland.sh --path    only prints the folder; exit status 1 if it is not there
# shellcheck source=kernel/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/recipe.sh"
# shellcheck source=kernel/source.sh
. "$here/source.sh"

list=$here/selftests/packages
suite=$(sed -n 's/^suite //p' "$list")
root=$cache/userland/$(cat "$list" "${BASH_SOURCE[0]}" | sha256sum | cut -c 1-16)

# What the packages' scripts would set up.
settle() { # the root
    ln -sf mawk "$1/usr/bin/awk"
    ln -sf nc.openbsd "$1/usr/bin/nc"
    ln -sf which.gnu "$1/usr/bin/which"
    ln -sf traceroute.db "$1/usr/bin/traceroute"
    ln -sf traceroute6.db "$1/usr/bin/traceroute6"
    local name
    for name in iptables ip6tables arptables; do
        ln -sf xtables-nft-multi "$1/usr/sbin/$name"
        ln -sf xtables-nft-multi "$1/usr/sbin/$name-save"
        ln -sf xtables-nft-multi "$1/usr/sbin/$name-restore"
    done
    ln -sf ebtables-legacy "$1/usr/sbin/ebtables" # bridge_brouter.sh: nft's has no redirect there
    printf 'root:x:0:0::/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n' >"$1/etc/passwd"
    echo 'tcpdump:x:0:0::/:/bin/false' >>"$1/etc/passwd" # it becomes this user, who writes where root does
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$1/etc/group"
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$1/etc/hosts"
    echo 'hosts: files dns' >"$1/etc/nsswitch.conf"
    rmdir "$1/var/run" && ln -s /run "$1/var/run" # where iproute2 and tests look for namespaces
}

fetch() {
    local place new deb packages
    place=$(command -v apt-get >/dev/null && mirror) ||
        die "apt knows no mirror of Debian's" "add one to apt's sources"
    read -ra packages <<<"$(grep -v -e '^#' -e '^suite ' "$list" | paste -sd ' ')"
    rm -rf "$cache"/userland/.new.* # what a killed one left
    new=$(mktemp -d "$cache/userland/.new.XXXXXX")
    # shellcheck disable=SC2064  # this folder
    trap "rm -rf '$new' '$recipe'" EXIT
    trap 'exit 130' INT TERM HUP
    mkdir -p "$new"/{state,cache/archives/partial,root}
    touch "$new/status"
    { apt_in "$new"; echo 'Debug::NoLocking "1";'; } >"$new/apt.conf"
    list_sources "$place" "$suite" >"$new/debian.sources"
    say "fetching the programs of Linux's tests from Debian $suite, about 230 MB, once"
    (cd "$new" && apt-get -q -c "$new/apt.conf" update &&
        apt-get -qy -c "$new/apt.conf" --no-install-recommends --download-only install \
            "${packages[@]}") >"$new/log" 2>&1 ||
        cannot_fetch "the programs of Linux's tests" "$suite" "$place" "$new/log"
    say "unpacking them"
    for deb in "$new"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" |
            tar -x -C "$new/root" --no-same-owner --keep-directory-symlink \
                --exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale' ||
            die "cannot unpack $(basename "$deb")" "is the disk full? (df -h $cache)"
        dpkg-deb -f "$deb" Package Version | paste -sd ' ' |
            sed 's/Package: //; s/Version: //' >>"$new/root/packages"
    done
    settle "$new/root"
    mv -T "$new/root" "$root" || die "cannot write $root" "is it yours?"
}

main() { # a function, so that all of the script is read before it runs for minutes
    [ $# = 0 ] || [ "$*" = --path ] || die "unknown argument: $*" "usage: userland.sh [--path]"
    if [ $# = 0 ] && [ ! -d "$root" ]; then
        mkdir -p "$cache/userland" ||
            die "cannot make $cache" "set XDG_CACHE_HOME to a directory of yours"
        exec 8>"$cache/userland/lock"
        flock -n 8 || { say "waiting for another that fetches them"; flock 8; }
        [ -d "$root" ] || (fetch)
    fi
    echo "$root"
    [ -d "$root" ]
}

main "$@"
