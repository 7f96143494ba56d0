#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds a guest kernel of the user's own and prints its directory as the last line of stdout.
#
#   own.sh NAME SOURCE [--patches DIR] [--config FILE] [--add DIR] [--like KERNEL] [--flavour NAME]
#
#   SOURCE         the folder of a source tree, or a version of Debian's (a folder here)
#   --patches DIR  further patches; one that has the name of one of ours replaces it
#   --config FILE  lines of a configuration, which replace ours for the same symbols
#   --add DIR      tcp_NAME.c and sch_NAME.c, which are built in
#   --like KERNEL  start the first build from a copy of this kernel's compiled files
#   --flavour NAME what an image of Debian's versions has besides (recipe.sh)
#
# A tree gets the patches of the nearest version that is not newer. Patches that the file `without`
# lists are left out where they do not apply. The build folder is kept, so that another build of the
# same name compiles only what has changed.
# shellcheck source=kernel/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/recipe.sh"
# shellcheck source=kernel/source.sh
. "$here/source.sh"

usage="usage: own.sh NAME SOURCE [--patches DIR] [--config FILE] [--add DIR] [--like KERNEL] [--flavour NAME]"
name=${1-} source=${2-}
[ "$source" ] || die "no name or no source" "$usage"
shift 2
patches='' config='' added='' like='' flavour='' asked=''
while [ $# -gt 0 ]; do
    [ "${2-}" ] || die "$1: a value is missing" "$usage"
    case $1 in
    --patches) patches=$2 ;;
    --config) config=$2 ;;
    --add) added=$2 ;;
    --like) like=$2 ;;
    --flavour) flavour=$2 ;;
    *) die "unknown argument: $1" "$usage" ;;
    esac
    [[ $1 == --[lf]* ]] || [ -e "$2" ] || die "$2: no such file or folder" "$1 takes one that is there"
    shift 2
done

number() { sed -n "s/^$1 *= *\([0-9]*\)\$/\1/p" "$source/Makefile" | head -n 1; }

# Prints the newest of our versions that is not newer than the tree, or the oldest of them.
nearest_version() { # the tree's
    local version nearest
    nearest=$(versions | head -n 1)
    for version in $(versions); do
        [ "$(printf '%s\n%s\n' "$version" "$1" | sort -V | head -n 1)" != "$version" ] ||
            nearest=$version
    done
    echo "$nearest"
}

choose_source() {
    if versions | grep -xF -- "$source" >/dev/null; then
        version=$source origin=$source
        need_source "$version"
        [ ! -e "$here/$flavour/suites" ] || asked_of "$version"
        source=$tarball
        return
    fi
    if [ ! -f "$source/Makefile" ] || [ ! -f "$source/arch/um/Kconfig" ]; then
        die "$source is no source tree of Linux" "it needs Makefile and arch/um/; or name a version"
    fi
    asked=$source
    origin=$(number VERSION).$(number PATCHLEVEL)
    version=$(nearest_version "$origin")
    [ "$version" = "$origin" ] || say "$source is Linux $origin: it gets the patches for $version"
}

add_own() {
    local file
    [ -z "$patches" ] || for file in "$patches"/*.patch; do
        [ -e "$file" ] || die "$patches: no patches in it" "they end in .patch"
        if [ -e "$recipe/patches/$(basename "$file")" ]; then
            cp "$file" "$recipe/patches/"
        else
            cp "$file" "$recipe/patches/own-$(basename "$file")"
        fi
    done
    [ -z "$config" ] || add_config "$config"
    if [ "$added" ]; then
        [ "$(find "$added" -maxdepth 1 \( -name 'tcp_*.c' -o -name 'sch_*.c' \) ! -name '*.bpf.c')" ] ||
            die "$added: nothing to add" "it needs tcp_NAME.c or sch_NAME.c"
        add_sources "$added"
    fi
    printf 'CONFIG_LOCALVERSION="-testbed-%s"\n' "$name" >"$recipe/name.config"
    add_config "$recipe/name.config"
    rm "$recipe/name.config"
    cp "$here/without" "$recipe/"
}

# What was compiled is kept: the next build of this name goes on from there.
clean_up() {
    rm -rf "$recipe" "$cache/own/.new.$name" "$cache/trees/$name.stage"
    rmdir "$cache/trees/$name" 2>/dev/null || true # nothing was
}

build() {
    local new=$cache/own/.new.$name
    mkdir -p "$cache/own" "$cache/trees"
    exec 9>"$cache/trees/$name.lock"
    flock -n 9 || { say "waiting for another build of $name"; flock 9; }
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    if [ ! -e "$cache/trees/$name" ] && [ "$like" ] && [ -d "$cache/trees/$like" ]; then
        cp -a --reflink=auto "$cache/trees/$like" "$cache/trees/$name"
    fi
    mkdir -p "$cache/trees/$name"
    SYMBOLS=yes "$here/build.sh" "$recipe" "$source" "$new" "$cache/trees/$name" \
        "$cache/trees/$name.log" "$name, of Linux $origin"
    sha256sum <"$new/linux" | cut -c 1-16 >"$new/base"
    note_hashes "$new"
    rm -rf "${cache:?}/own/$name"
    mv -T "$new" "$cache/own/$name"
    echo "$cache/own/$name"
}

main() { # a function, so that all of the script is read before it runs for minutes
    check_tools
    choose_source
    lay_out "$version" "$flavour" "$asked"
    add_own
    build
}

main
