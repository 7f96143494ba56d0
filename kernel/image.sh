#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the guest kernel: the base kernel of build.sh with every queue discipline of
# queues/ built in. Arguments and output are build.sh's; in the directory is also `base`,
# the base kernel's key.
#
# Trials that use none of the added disciplines are the base kernel's: to keep its key,
# build.sh is run on a copy of this folder, with a patch more for each discipline.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# A patch that adds queues/sch_NAME.c with the symbol NET_SCH_NAME, which is on.
as_patch() { # file
    local name symbol
    name=$(basename "$1" .c)
    symbol=NET_$(tr '[:lower:]' '[:upper:]' <<<"$name")
    printf -- '--- /dev/null\n+++ b/net/sched/%s.c\n@@ -0,0 +1,%d @@\n' "$name" "$(wc -l <"$1")"
    sed 's/^/+/' "$1"
    printf -- '--- a/net/sched/Makefile\n+++ b/net/sched/Makefile\n@@ -68,1 +68,2 @@\n'
    printf " obj-\$(CONFIG_NET_SCH_FQ_PIE)\t+= sch_fq_pie.o\n"
    printf "+obj-\$(CONFIG_%s) += %s.o\n" "$symbol" "$name"
    printf -- '--- a/net/sched/Kconfig\n+++ b/net/sched/Kconfig\n@@ -1,1 +1,4 @@\n'
    printf ' # SPDX-License-Identifier: GPL-2.0-only\n'
    printf '+config %s\n+\tdef_bool y\n+\tdepends on NET_SCHED\n' "$symbol"
}

mkdir "$copy/patches"
cp "$here"/{build.sh,guest.config,initramfs.list} "$here"/*.c "$copy/"
cp "$here"/patches/*.patch "$copy/patches/"
cp -r "$here/congestion" "$copy/"
for file in "$here"/queues/sch_*.c; do
    as_patch "$file" >"$copy/patches/queue-$(basename "$file" .c).patch"
done

base=$("$here/build.sh" --path) || true # printed also if it is not built
path=$("$copy/build.sh" "$@") || { echo "$path"; exit 1; }
if [ ! -e "$path/base" ]; then
    basename "$base" >"$path/.base.$$"
    mv "$path/.base.$$" "$path/base"
fi
echo "$path"
