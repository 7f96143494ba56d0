#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the guest kernel into the user's cache and prints its directory as the
# last line of stdout; --path only prints it (exit status 1 if it is not built).
# What happens and how long it takes goes to stderr.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tcp-testbed/kernel
package=linux-source-6.1
tarball=/usr/src/$package.tar.xz
needed_mb=1500
expected_files=891 # what a build compiles, for the estimate of the time left

die() { # message, hint
    printf 'kernel/build.sh: %s\n  %s\n' "$1" "$2" >&2
    exit 1
}

say() { printf 'kernel: %s\n' "$*" >&2; }

check_tools() {
    local missing=() need
    # command:package
    for need in gcc:gcc make:make bison:bison flex:flex bc:bc patch:patch \
        xz:xz-utils tar:tar flock:util-linux perl:perl; do
        command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
    done
    [ -e "$tarball" ] || missing+=("$package")
    [ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
    [ ${#missing[@]} = 0 ] ||
        die "missing: ${missing[*]}" "apt-get install ${missing[*]}"
}

inputs() {
    shopt -s nullglob
    printf '%s\n' "$here"/{build.sh,guest.config,initramfs.list} "$here"/*.c \
        "$here"/patches/*.patch "$here"/congestion/*.c
}

# The first 16 digits of a hash of all that goes into the kernel.
kernel_key() {
    {
        dpkg-query -W -f '${Version}\n' "$package"
        gcc -dumpfullversion
        inputs | while read -r file; do
            printf '%s ' "${file#"$here/"}"
            sha256sum <"$file"
        done
    } | sha256sum | cut -c 1-16
}

# Only what ARCH=um reads: the rest of the drivers is needed for its Kconfig files.
extract() {
    local skip=() dir
    for dir in gpu net/ethernet 'net/wireless/*' media scsi staging clk misc usb \
        pinctrl infiniband video iio; do
        skip+=(--exclude="*/drivers/$dir/*.[chS]")
    done
    xz -T0 -dc "$tarball" | tar -x --strip-components=1 -C "$tree" "${skip[@]}" \
        --exclude='*/Documentation/*/*' --exclude='*/tools/testing/*' --exclude='*/tools/perf/*' \
        --exclude='*/sound/*.[ch]' --exclude='*/arch/[!ux]*/*.[chS]' \
        --exclude='*.dts' --exclude='*.dtsi'
}

add_ours() {
    local file name symbol
    for file in "$here"/patches/*.patch; do
        patch -d "$tree" -p1 --silent --no-backup-if-mismatch <"$file" ||
            die "${file##*/} does not apply" "is $package not the version it was made for?"
    done
    for file in "$here"/congestion/*.c; do
        [ -e "$file" ] || continue
        name=$(basename "$file" .c) # tcp_NAME, as Linux's own
        symbol=TCP_CONG_$(tr '[:lower:]' '[:upper:]' <<<"${name#tcp_}")
        cp "$file" "$tree/net/ipv4/"
        printf "obj-\$(CONFIG_%s) += %s.o\n" "$symbol" "$name" >>"$tree/net/ipv4/Makefile"
        printf '\nconfig %s\n\tdef_bool y\n' "$symbol" >>"$tree/net/ipv4/Kconfig"
    done
    mkdir "$tree/testbed"
    cp "$here/initramfs.list" "$tree/testbed/"
    # a database of radio regulations without a country: the world's common rules hold
    printf 'RGDB\0\0\0\024\0\0\0\0' >"$tree/testbed/regulatory.db"
    gcc -Wall -O2 -static -s -o "$tree/testbed/init" "$here/init.c"
}

configure() {
    local dropped
    make -s -C "$tree" ARCH=um KCONFIG_ALLCONFIG="$here/guest.config" allnoconfig >"$log" 2>&1 ||
        die "cannot configure the kernel: $(head -n 1 "$log")" "the whole log is in $log"
    dropped=$(grep -E '^CONFIG_' "$here/guest.config" | while IFS= read -r line; do
        case $line in
        *=n) ! grep -q "^${line%=n}=" "$tree/.config" || echo "$line" ;;
        *) grep -qxF -- "$line" "$tree/.config" || echo "$line" ;;
        esac
    done)
    [ -z "$dropped" ] || die "the kernel drops from guest.config: ${dropped//$'\n'/ }" \
        "something that they depend on is off; see $tree/.config"
}

# One line, overwritten on a terminal; elsewhere one every 20 seconds.
report() { # share in percent, seconds so far
    local left=$(($2 * (100 - $1) / ($1 > 0 ? $1 : 1)))
    local line="kernel: compiling, $1 %"
    [ "$1" -lt 3 ] || line+=", about $((left / 60)) min $((left % 60)) s left"
    if [ -t 2 ]; then
        printf '\r\033[K%s' "$line" >&2
    elif [ $(($2 % 20)) = 0 ]; then
        printf '%s\n' "$line" >&2
    fi
}

compile() {
    local make_pid share start=$SECONDS
    make -C "$tree" ARCH=um KBUILD_BUILD_USER=testbed KBUILD_BUILD_HOST=testbed \
        KBUILD_BUILD_TIMESTAMP=1970-01-01 -j"$(nproc)" linux >"$log" 2>&1 &
    make_pid=$!
    while kill -0 $make_pid 2>/dev/null; do
        share=$(($(grep -cE '^  (CC|AS) ' "$log" || true) * 100 / expected_files))
        report $((share < 99 ? share : 99)) $((SECONDS - start))
        sleep 1
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
    wait $make_pid || {
        grep -m 3 -iE 'error|no space' "$log" >&2 || tail -n 3 "$log" >&2
        die "the build failed" "the whole log is in $log"
    }
}

# Under a temporary name until it is complete: a directory that exists is whole.
install_kernel() {
    local new=$cache/.new.$$
    mkdir "$new"
    strip -o "$new/linux" "$tree/linux"
    cp "$tree/.config" "$new/config"
    printf '%s (%s %s)\n' "$(make -s -C "$tree" ARCH=um kernelrelease)" "$package" \
        "$(dpkg-query -W -f '${Version}' "$package")" >"$new/version"
    mv -T "$new" "$cache/$key"
}

build() {
    local free
    tree=$cache/.tree.$$
    log=$cache/build.log
    trap 'rm -rf "$tree" "$cache/.new.$$"' EXIT
    trap 'exit 130' INT TERM HUP
    # Those of killed builds: while we have the lock, nobody else builds.
    rm -rf "$cache"/.tree.* "$cache"/.new.*
    free=$(df -Pm "$cache" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$needed_mb" ] || die "only $free MB free in $cache, $needed_mb needed" \
        "set XDG_CACHE_HOME to a directory with more room"

    say "building $key in $cache: about $((10 / $(nproc) + 1)) minutes on $(nproc) cores, once"
    mkdir "$tree"
    extract || die "cannot unpack $tarball" "is the disk full? (df -h $cache)"
    add_ours
    configure
    compile
    install_kernel
    say "built in $SECONDS seconds"
}

[ $# = 0 ] || [ "$*" = --path ] || die "unknown argument: $*" "usage: build.sh [--path]"
check_tools
key=$(kernel_key)
if [ "${1:-}" = --path ]; then
    echo "$cache/$key"
    [ -e "$cache/$key/linux" ]
    exit
fi
mkdir -p "$cache" || die "cannot make $cache" "set XDG_CACHE_HOME to a directory of yours"
if [ ! -e "$cache/$key/linux" ]; then
    exec 9>"$cache/lock"
    flock -n 9 || { say "waiting for another build"; flock 9; }
    [ -e "$cache/$key/linux" ] || build
fi
echo "$cache/$key"
