#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the guest kernel from Debian's linux-source-VERSION into the user's cache and prints
# its directory as the last line of stdout. The default version is the oldest whose source is
# here: the stored numbers are of that one. The source of a version that is named is fetched
# (source.sh).
#
#   image.sh [VERSION]           builds it, if it is not there or damaged
#   image.sh --path [VERSION]    only prints the directory; exit status 1 if it is not built
#   image.sh --whole [VERSION]   the same, and checks its files by their hashes; with --symbols, also
#                                whether it has these
#   image.sh --symbols VERSION   adds the file `symbols` for a debugger, by a second build of the
#                                same sources, whose code is compared with the first one's
#   image.sh --flavour NAME …    the same for another image of the version: `machine`, of whole
#                                programs, `debug`, which looks for the kernel's own errors, or
#                                `selftests`, of Linux's own tests of the network
#
# The file `base` in the directory is the key without the queue disciplines of queues/, for trials
# that use none of those.
# shellcheck source=kernel/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/recipe.sh"
# shellcheck source=kernel/source.sh
. "$here/source.sh"

default_version() {
    local version
    for version in $(versions); do find_source "$version" && echo "$version" && return; done
    versions | head -n 1
}

# Prints the first 16 digits of a hash of the given files of the recipe, and of what build.sh does.
key_of() {
    local file digest
    digest=$({
        printf '%s\n' "$packaged" "$compiler"
        sed '/^ *#/d' build.sh
        for file in "$@"; do printf '%s %s  -\n' "$file" "${sums[$file]}"; done
    } | sha256sum)
    echo "${digest:0:16}"
}

# Every command of the testbed needs the keys, so one process hashes each file once.
find_keys() {
    local -A sums
    local hashes sum file compiler
    compiler=$(gcc -dumpfullversion)
    cd "$recipe"
    shopt -s nullglob
    local before=(guest.config initramfs.list *.c) congestion=(congestion/*.c)
    local patches=(patches/*.patch) numbered=(patches/[0-9]*.patch)
    hashes=$(sha256sum "${before[@]}" "${patches[@]}" "${congestion[@]}")
    while read -r sum file; do sums[$file]=$sum; done <<<"$hashes"
    base=$(key_of "${before[@]}" "${numbered[@]}" "${congestion[@]}")
    key=$(key_of "${before[@]}" "${patches[@]}" "${congestion[@]}")
    cd "$OLDPWD"
}

# Whether the image is there, with the hashes that were noted when it was built. An older image gets
# them now.
is_whole() (
    cd "$cache/$key" 2>/dev/null || exit 1
    if [ -e sha256 ]; then
        sha256sum --check --status sha256
    else
        [ -s linux ] && [ -s config ] && [ -e version ] && [ -e base ] || exit 1
        note_hashes . 2>/dev/null || true # it is another user's
    fi
)

build() {
    local tree=$cache/.tree.$$
    trap 'rm -rf "$recipe" "$cache/.tree.$$" "$cache/.new.$$"' EXIT
    trap 'exit 130' INT TERM HUP
    [ ! -e "$cache/$key" ] || say "the kernel in $cache/$key is damaged, and built again"
    # Remove what killed builds left: while we have the lock, nobody else builds.
    rm -rf "$cache"/.tree.* "$cache"/.new.*
    [ -z "$flavour" ] || say "the flavour $flavour of Linux $version is not built yet"
    # for gdb: a second build of it would have other code, as GCOV's names of files are in it
    [ "$flavour" != debug ] || export SYMBOLS=yes
    "$here/build.sh" "$recipe" "$tarball" "$cache/.new.$$" "$tree" \
        "$cache/build-$version${flavour:+-$flavour}.log" \
        "linux-source-$version $packaged"
    echo "$base" >"$cache/.new.$$/base"
    note_hashes "$cache/.new.$$"
    rm -rf "${cache:?}/$key"
    mv -T "$cache/.new.$$" "$cache/$key"
}

# Prints hashes of what a kernel does: of its code and its data, but for the note with the build's id.
code_of() { # kernel
    local section
    for section in .init.text .text .syscall_stub .rodata init.data .data; do
        objcopy -O binary -j "$section" "$1" "$cache/.new.$$/section"
        sha256sum <"$cache/.new.$$/section"
    done
}

build_symbols() {
    local tree=$cache/.tree.$$ place=$cache/$key
    trap 'rm -rf "$recipe" "$cache/.tree.$$" "$cache/.new.$$"' EXIT
    trap 'exit 130' INT TERM HUP
    SYMBOLS=yes "$here/build.sh" "$recipe" "$tarball" "$cache/.new.$$" "$tree" \
        "$cache/symbols-$version.log" "linux-source-$version $packaged"
    [ "$(code_of "$cache/.new.$$/linux")" = "$(code_of "$place/linux")" ] ||
        die "a second build of Linux $version has other code" "rm -r $place, and build it again"
    mv -T "$cache/.new.$$/symbols" "$place/symbols"
}

main() { # a function, so that all of the script is read before it runs for minutes
    only_path='' whole='' symbols='' flavour=''
    while true; do
        case ${1-} in
        --path) only_path=yes ;;
        --whole) only_path=yes whole=yes ;;
        --symbols) symbols=yes ;;
        --flavour)
            [ $# -gt 1 ] || die "--flavour: no name" "there are $(flavours | paste -sd ' ')"
            flavour=$2
            shift
            ;;
        *) break ;;
        esac
        shift
    done
    version=${1-$(default_version)}
    if [ $# -gt 1 ] || [[ $version == -* ]]; then
        die "unknown argument: $*" "usage: image.sh [--path|--whole|--symbols] [--flavour NAME] [VERSION]"
    fi
    # not grep -q: it ends before the names do, and their writer by SIGPIPE
    versions | grep -xF -- "$version" >/dev/null ||
        die "no patches for Linux $version" "there are some for $(versions | paste -sd ' ')"
    [ -z "$flavour" ] || flavours | grep -xF -- "$flavour" >/dev/null ||
        die "no flavour $flavour" "there are $(flavours | paste -sd ' ')"
    if [ "$only_path" ]; then
        find_source "$version" ||
            die "no source of Linux $version is here" "image.sh $version fetches it"
    fi
    check_tools
    need_source "$version"
    asked=''
    [ ! -e "$here/$flavour/suites" ] || asked_of "$version"
    lay_out "$version" "$flavour" "$asked"
    find_keys
    if [ "$only_path" ]; then
        echo "$cache/$key"
        if [ "$whole" ]; then is_whole; else [ -e "$cache/$key/linux" ]; fi || exit
        [ -z "$symbols" ] || [ -e "$cache/$key/symbols" ]
        exit
    fi
    mkdir -p "$cache" || die "cannot make $cache" "set XDG_CACHE_HOME to a directory of yours"
    if ! is_whole || { [ "$symbols" ] && [ ! -e "$cache/$key/symbols" ]; }; then
        exec 9>"$cache/lock"
        flock -n 9 || say "waiting for another build, which takes minutes"
        until flock -w 60 9; do say "still waiting for another build"; done
        is_whole || build
        [ -z "$symbols" ] || [ -e "$cache/$key/symbols" ] || build_symbols
    fi
    echo "$cache/$key"
}

main "$@"
