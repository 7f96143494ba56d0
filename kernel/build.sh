#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Compiles one guest kernel; image.sh and own.sh call it. The arguments:
#
#   RECIPE  our part, copied by recipe.sh: patches/, congestion/, guest.config, init.c, …
#   SOURCE  Debian's tarball, or the folder of a source tree
#   OUT     the directory to make, with `linux`, `config` and `version`; `coverage` for gcov
#   TREE    where to compile; if it exists, only what has changed is compiled
#   LOG     what the tools say
#   ORIGIN  the source's name, for `version`
#
# With SYMBOLS=yes in the environment, OUT also has `symbols`: what a debugger reads beside `linux`
# (cc says of which files), whose code is the same either way. Progress goes to stderr.
set -euo pipefail
export LC_ALL=C
export TZ=UTC # of KBUILD_BUILD_TIMESTAMP: the first root's format has no times before 1970

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
recipe=$1 source=$2 out=$3 tree=$4 log=$5 origin=$6
stage=$tree.stage
needed_mb=1500
expected_files=850 # what a build compiles, for the estimate of the time left

die() { # message, hint
    printf 'kernel: error: %s\n  %s\n' "$1" "$2" >&2
    exit 1
}

say() { printf 'kernel: %s\n' "$*" >&2; }

check_room() {
    local free where
    where=$(dirname "$out")
    free=$(df -Pm "$where" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$needed_mb" ] || die "only $free MB free in $where, $needed_mb needed" \
        "set XDG_CACHE_HOME to a directory with more room"
}

# Only what ARCH=um reads: the rest of the drivers is needed for its Kconfig files.
extract() {
    local skip=(--exclude='.git' --exclude='*.o' --exclude='*.cmd') dir
    for dir in gpu net/ethernet 'net/wireless/[!v]*' media scsi staging clk misc usb \
        pinctrl infiniband video iio; do
        skip+=(--exclude="*/drivers/$dir/*.[chS]")
    done
    skip+=(--exclude='*/Documentation/*/*' --exclude='*/tools/testing/*'
        --exclude='*/tools/perf/*' --exclude='*/sound/*.[ch]' --exclude='*/arch/[!ux]*/*.[chS]'
        --exclude='*.dts' --exclude='*.dtsi')
    if [ -d "$source" ]; then
        tar -c -C "$source" "${skip[@]}" . | tar -x -C "$stage"
    else
        xz -T0 -dc "$source" | tar -x --strip-components=1 -C "$stage" "${skip[@]}"
    fi
}

# Applies a patch, or ends unless RECIPE/without lists it (own.sh). Its context must be as it says:
# with fuzz, lines have landed in another struct. Only recipe.sh's own have next to no context.
apply() { # file
    local without="$recipe/without" name=${1##*/} fuzz=0
    [[ $name != queue-* ]] || fuzz=1
    patch -d "$stage" -p1 -F$fuzz --dry-run --force <"$1" >"$log" 2>&1 && {
        patch -d "$stage" -p1 -F$fuzz --silent --no-backup-if-mismatch <"$1"
        return
    }
    if [ -e "$without" ] && cost=$(grep -m 1 "^${name%%-*} " "$without"); then
        say "$name does not apply: ${cost#* }"
        [[ $name != 0020-* ]] || drop_controls
        return
    fi
    die "${name#own-} does not apply: $(place_of_failure)" "the source is another one there: port the patch"
}

# What `patch` says of the first change that it cannot make, with the file's name.
place_of_failure() {
    awk '/^checking file / { file = $3 }
        /^\|\+\+\+ / { file = substr($2, 3) }
        /FAILED at|No file to patch|^Reversed/ { print file ": " $0; exit }' "$log"
}

add_controls() {
    local file name symbol
    for file in "$recipe"/congestion/*.c; do
        [ -e "$file" ] || continue
        name=$(basename "$file" .c) # tcp_NAME, as Linux's own
        symbol=TCP_CONG_$(tr '[:lower:]' '[:upper:]' <<<"${name#tcp_}")
        cp "$file" "$stage/net/ipv4/"
        printf "obj-\$(CONFIG_%s) += %s.o\n" "$symbol" "$name" >>"$stage/net/ipv4/Makefile"
        printf '\nconfig %s\n\tdef_bool y\n' "$symbol" >>"$stage/net/ipv4/Kconfig"
    done
}

# Without 0020, the project's controls do not compile; a user's own stay.
drop_controls() {
    local file name
    for file in "$here"/congestion/tcp_*.c; do
        name=$(basename "$file" .c)
        sed -i "/ $name\\.o\$/d" "$stage/net/ipv4/Makefile"
    done
}

add_ours() {
    local file cpio=$stage/usr/gen_init_cpio.c
    add_controls # before the patches: a version may patch them
    for file in "$recipe"/patches/*.patch; do
        [ ! -e "$file" ] || apply "$file"
    done
    # 6.1 puts the time at which we compiled /init into the first root, and so into the build's id
    [ ! -e "$cpio" ] || sed -i 's/(long) buf\.st_mtime,/(long) default_mtime,/' "$cpio"
    mkdir "$stage/testbed"
    cp "$recipe/initramfs.list" "$stage/testbed/"
    # a database of radio regulations without a country: the world's common rules hold
    printf 'RGDB\0\0\0\024\0\0\0\0' >"$stage/testbed/regulatory.db"
    gcc -Wall -O2 -static -s -o "$stage/testbed/init" "$recipe/init.c"
}

make_um() { # make's words
    make -C "$tree" ARCH=um CC="$here/cc" KBUILD_BUILD_USER=testbed KBUILD_BUILD_HOST=testbed \
        KBUILD_BUILD_TIMESTAMP=1970-01-01 "$@"
}

configure() {
    local dropped config=$recipe/guest.config
    make_um -s KCONFIG_ALLCONFIG="$config" allnoconfig >"$log" 2>&1 ||
        die "cannot configure the kernel: $(head -n 1 "$log")" "the whole log is in $log"
    dropped=$(grep -E '^CONFIG_' "$config" | while IFS= read -r line; do
        case $line in
        *=n) ! grep -q "^${line%=n}=" "$tree/.config" || echo "$line" ;;
        *) grep -qxF -- "$line" "$tree/.config" || echo "$line" ;;
        esac
    done)
    [ -z "$dropped" ] || [ -e "$recipe/without" ] ||
        die "the kernel drops from guest.config: ${dropped//$'\n'/ }" \
            "something that they depend on is off; see $tree/.config"
    [ -z "$dropped" ] || say "the kernel drops from guest.config: ${dropped//$'\n'/ }"
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

# These files have all the words that tell the kernel's files apart.
read_headers_once() {
    [ "$HEADERS" ] || return 0
    mkdir -p "$HEADERS/all.h.gch"
    cp "$here/headers.h" "$HEADERS/all.h"
    HEADERS_LIKE=plain make_um -j"$(nproc)" lib/ctype.o
    [ -z "${SYMBOLS-}" ] || HEADERS_LIKE=symbols make_um lib/cmdline.o
    ! grep -qx CONFIG_MAC80211=y "$tree/.config" ||
        HEADERS_LIKE=debug make_um -j"$(nproc)" net/mac80211/util.o
}

# Says what to change where a control of the user's is for another version's interface.
advise() {
    local pattern advice
    while read -r pattern advice; do
        ! grep 'error: ' "$log" | grep -qE -- "$pattern" ||
            printf 'kernel: %s\n' "$advice"
    done <"$here/moved"
}

compile() {
    local make_pid share errors start=$SECONDS
    rm -f "$tree/.version" # a count of builds, which would be in the kernel's banner
    { read_headers_once && make_um -j"$(nproc)" linux; } >"$log" 2>&1 &
    make_pid=$!
    while kill -0 $make_pid 2>/dev/null; do
        share=$(($(grep -cE '^  (CC|AS) ' "$log" || true) * 100 / expected_files))
        report $((share < 99 ? share : 99)) $((SECONDS - start))
        sleep 1
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
    wait $make_pid || {
        errors=$(grep -m 3 -E 'error: |^ERROR|No space|undefined reference|\*\*\*' "$log" ||
            tail -n 1 "$log")
        tail -n +2 <<<"$errors" >&2
        advise >&2
        die "the build failed: ${errors%%$'\n'*}" "the whole log is in $log"
    }
}

install_kernel() {
    rm -rf "$out"
    mkdir "$out"
    strip -o "$out/linux" "$tree/linux"
    [ -z "${SYMBOLS-}" ] || cp "$tree/linux" "$out/symbols"
    if grep -qx CONFIG_GCOV_KERNEL=y "$tree/.config"; then # what gcov reads beside the counts
        mkdir "$out/coverage"
        cp "$tree"/net/ipv4/*.gcno "$out/coverage/"
    fi
    cp "$tree/.config" "$out/config"
    printf '%s (%s)\n' "$(make_um -s kernelrelease)" "$origin" >"$out/version"
}

main() { # a function, so that all of the script is read before it runs for minutes
    trap 'rm -rf "$stage"' EXIT
    trap 'exit 130' INT TERM HUP
    check_room
    # cc reads headers once: not where the tree is kept, since make would not know afterwards which
    # of them a file depends on
    local minutes=10
    export HEADERS=
    [ -d "$tree" ] || { HEADERS=$tree/.headers && minutes=5; }
    if [ -e "$tree/linux" ]; then
        say "building $origin: what has changed since the last time"
    else
        say "building $origin: about $((minutes / $(nproc) + 1)) minutes on $(nproc) cores, once"
    fi
    rm -rf "$stage"
    mkdir "$stage"
    extract || die "cannot unpack $source" "is the disk full? (df -h $stage)"
    add_ours
    if [ -d "$tree" ]; then
        "$here/refresh.py" "$stage" "$tree"
    else
        mv "$stage" "$tree"
    fi
    configure
    compile
    install_kernel
    say "built in $SECONDS seconds"
}

main
