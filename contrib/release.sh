#!/usr/bin/env bash
# `make release` writes dist/: the wheel, with the programs in C and the guest's kernel; wheels of the
# other kernels and of the image of whole programs, as far as they are built; what all that is made of
# (sbom.py); and the sources that come with it. The same commit gives the same bytes, whatever the
# user's umask and the files' times are. Root's tar keeps the archive's modes, which git makes group-writable.
set -euo pipefail
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rm -rf dist
mkdir -p dist/sources
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
git -c tar.umask=0022 -c core.autocrlf=false -c core.attributesFile=/dev/null archive HEAD |
    tar -x -C "$source"

# Prints the platform of the oldest C library that has all that the programs in these folders use.
platform() { # FOLDER…
    find "$@" -type f -exec readelf --version-info {} + 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' | sort -V |
        sed -n '$s/GLIBC_2\.\(.*\)/manylinux_2_\1_x86_64/p'
}

wheel() { # PROJECT, and the folders in it that have programs
    local project=$1
    shift
    .venv/bin/python -m pip wheel -q --no-deps --no-build-isolation -w dist "$project" \
        --config-settings=--build-option=--plat-name="$(platform "${@/#/$project/}")"
}

add_kernel() { # KERNEL PACKAGE
    mkdir -p "$2"
    cp "$1"/{linux,config,version,base,sha256} "$2/"
    echo '"""A kernel of the guest."""' >"$2/__init__.py"
}

# Copies Debian's source of a kernel, in the version that the kernel was built from.
add_source() { # KERNEL VERSION
    (
        # shellcheck source=kernel/recipe.sh
        . "$source/kernel/recipe.sh"
        # shellcheck source=kernel/source.sh
        . "$source/kernel/source.sh"
        need_source "$2"
        grep -qF "(linux-source-$2 $packaged)" "$1/version" ||
            die "$(<"$1/version") is not of linux-source-$2 $packaged" "testbed kernel build $2"
        cp "$tarball" "dist/sources/linux-source-$2_$packaged.tar.xz"
    )
}

kernel_wheel() { # its NAME, and image.sh's words for it
    local kernel project=$source/.kernel package=tcp_testbed_kernel_${1//[.-]/_}
    kernel=$("$source/kernel/image.sh" --whole "${@:2}" 2>/dev/null) || return 0
    rm -rf "$project"
    add_kernel "$kernel" "$project/$package"
    cp "$source/kernel/LICENSE-GPL-2.0" "$project/"
    cat >"$project/pyproject.toml" <<END
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "tcp-testbed-kernel-$1"
version = "$version"
description = "A kernel of the TCP testbed's guest: $(<"$kernel/version")"
license = "GPL-2.0-only"
license-files = ["LICENSE-GPL-2.0"]
[project.entry-points."tcp_testbed.kernels"]
"$1" = "$package"
[tool.setuptools]
packages = ["$package"]
[tool.setuptools.package-data]
"*" = ["*"]
END
    wheel "$project" "$package"
    add_source "$kernel" "${@: -1}"
}

.venv/bin/python "$source/contrib/sbom.py" >dist/sbom.json
mkdir "$source/testbed/compiled"
make -s -j "$(nproc)" -C "$source" lib=testbed/compiled objects=.objects
rm -r "$source/.objects"
kernel=$("$source/kernel/image.sh" 6.1)
add_kernel "$kernel" "$source/testbed/guest/linux_6_1"
add_source "$kernel" 6.1
wheel "$source" testbed/compiled testbed/guest/linux_6_1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
for name in 6.12 7.3; do kernel_wheel "$name" "$name"; done
kernel_wheel 6.1-machine --flavour machine 6.1
cp "$(python3 foreign/fetch.py iproute2_6.1.0.orig.tar.xz)" dist/sources/
ls -l dist
