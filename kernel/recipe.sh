# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Functions of image.sh and own.sh: copy our part of a kernel into one folder, the recipe.
#
# A version of Linux is a folder here (6.1/, 6.12/) with its own patches and lines of configuration;
# what all versions share is in patches/, congestion/, queues/ and guest.config. A flavour is another
# image of a version, and a folder here, which comes on top: machine/, on which whole programs run
# (docs/mininet.md), debug/, which looks for the kernel's own errors (docs/kernels.md), and selftests/, on
# which Linux's own tests of the network run (docs/selftests.md). A flavour may be `on` another one.
set -euo pipefail
export LC_ALL=C

# services run without it
: "${HOME:=$(getent passwd "$EUID" | cut -d: -f6)}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034  # of the scripts that source this one
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tcp-testbed/kernel
recipe=$(mktemp -d)
trap 'rm -rf "$recipe"' EXIT

die() { # message, hint
    printf 'kernel: error: %s\n  %s\n' "$1" "$2" >&2
    exit 1
}

say() { printf 'kernel: %s\n' "$*" >&2; }

versions() { # the versions that have a folder, the oldest first
    local folder
    for folder in "$here"/[0-9]*/patches; do
        folder=${folder%/*}
        echo "${folder##*/}"
    done | sort -V
}

flavours() { # the folders of the versions' other images
    local folder
    for folder in "$here"/[a-z]*/guest.config; do
        folder=${folder%/*}
        echo "${folder##*/}"
    done
}

check_tools() {
    local missing=() need
    # command:package
    for need in gcc:gcc make:make bison:bison flex:flex bc:bc patch:patch \
        xz:xz-utils tar:tar flock:util-linux perl:perl; do
        command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
    done
    [ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
    [ ${#missing[@]} = 0 ] ||
        die "missing: ${missing[*]}" "apt-get install ${missing[*]}"
}

# Prints a patch that adds sch_NAME.c with the symbol NET_SCH_NAME, which is on.
queue_as_patch() { # file
    local name symbol
    name=${1##*/}
    name=${name%.c}
    symbol=NET_${name^^}
    printf -- '--- /dev/null\n+++ b/net/sched/%s.c\n@@ -0,0 +1,%d @@\n' "$name" "$(wc -l <"$1")"
    sed 's/^/+/' "$1"
    printf -- '--- a/net/sched/Makefile\n+++ b/net/sched/Makefile\n@@ -68,1 +68,2 @@\n'
    printf " obj-\$(CONFIG_NET_SCH_FQ_PIE)\t+= sch_fq_pie.o\n"
    printf "+obj-\$(CONFIG_%s) += %s.o\n" "$symbol" "$name"
    printf -- '--- a/net/sched/Kconfig\n+++ b/net/sched/Kconfig\n@@ -1,1 +1,4 @@\n'
    printf ' # SPDX-License-Identifier: GPL-2.0-only\n'
    printf '+config %s\n+\tdef_bool y\n+\tdepends on NET_SCHED\n' "$symbol"
}

add_config() { # file: its lines replace those of the same symbol
    local symbols
    symbols=$(sed -n 's/^\(CONFIG_[A-Z0-9_a-z]*\)=.*/\1/p' "$1")
    grep -vE "^(${symbols//$'\n'/|})=" "$recipe/guest.config" >"$recipe/.config" || true
    cat "$recipe/.config" "$1" >"$recipe/guest.config"
    rm "$recipe/.config"
}

add_sources() { # folder with tcp_NAME.c and sch_NAME.c; NAME.bpf.c is loaded, not built in
    local file name controls=()
    shopt -s nullglob
    for file in "$1"/tcp_*.c; do
        [[ $file == *.bpf.c ]] || controls+=("$file")
    done
    [ ${#controls[@]} = 0 ] || cp "${controls[@]}" "$recipe/congestion/"
    for file in "$1"/sch_*.c; do
        name=${file##*/}
        queue_as_patch "$file" >"$recipe/patches/queue-${name%.c}.patch"
    done
}

# Copies patches without the prose before their first file: rewording it is no other kernel.
add_patches() { # folder
    local ours=("$1"/*.patch)
    [ -e "${ours[0]-}" ] || return 0
    awk -v to="$recipe/patches/" '
        FNR == 1 { close(out); out = FILENAME; sub(".*/", to, out); code = 0; printf "" >out }
        /^(---|diff )/ { code = 1 }
        code { print >out }' "${ours[@]}"
}

note_hashes() { # an image's folder
    (cd "$1" && sha256sum linux config version base >sha256)
}

# Adds what the tests of a tree ask for, as far as neither a flavour nor what it cannot have says
# something of it: as modules or built in, all is built in.
add_asked() { # the flavour's folder, the tree
    local suite configs=()
    while read -r suite; do
        [ ! -e "$2/tools/testing/selftests/$suite/config" ] ||
            configs+=("$2/tools/testing/selftests/$suite/config")
    done < <(grep -v '^#' "$1/suites")
    [ ${#configs[@]} != 0 ] || die "$2 has no tests of the network" "is it a source tree of Linux?"
    awk '
        { sub(/[ \t]*(#.*)?$/, "") }
        !/^CONFIG_/ { if (FILENAME == ARGV[1] && $1 != "") settled["CONFIG_" $1]; next }
        { split($0, part, "=") }
        FILENAME == ARGV[2] { settled[part[1]]; next }
        part[2] == "m" { part[2] = "y" }
        !(part[1] in settled) && part[2] != "n" { settled[part[1]]; print part[1] "=" part[2] }
    ' "$1/cannot" "$recipe/guest.config" "${configs[@]}" >"$recipe/asked"
    cat "$recipe/asked" >>"$recipe/guest.config"
    rm "$recipe/asked"
}

lay_out() { # version, and a flavour, whose part may be in VERSION/FLAVOUR/, too; a tree with tests
    local folder part
    mkdir "$recipe"/{patches,congestion}
    cp "$here"/{build.sh,guest.config,initramfs.list} "$here"/*.c "$recipe/"
    add_patches "$here/patches"
    add_patches "$here/$1/patches" # one of the same name replaces the common one
    add_sources "$here/congestion"
    add_sources "$here/queues"
    [ ! -e "$here/$1/guest.config" ] || add_config "$here/$1/guest.config"
    [ "${2-}" ] || return 0
    for part in $(cat "$here/$2/on" 2>/dev/null) "$2"; do
        for folder in "$here/$part" "$here/$1/$part"; do
            add_patches "$folder/patches"
            [ ! -e "$folder/guest.config" ] || add_config "$folder/guest.config"
        done
    done
    [ ! -e "$here/$2/suites" ] || {
        add_asked "$here/$2" "$3"
        : >"$recipe/without" # no patch, but what a version does not know: build.sh says so
    }
}
