# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Functions of image.sh and own.sh: find Debian's package linux-source-VERSION, or fetch it.
#
# What is installed comes first. 6.1 is fetched by its hash (foreign/linux.list): a mirror's may be older
# than the patches, or newer. Otherwise apt, told to keep all its state in a folder of ours, fetches
# the package of the suite that VERSION/suite names from the machine's own mirror. That needs no root
# and changes nothing on the machine; apt checks the signatures, as ever.

# shellcheck disable=SC2154,SC2034  # recipe.sh: cache, here; of the scripts that source this one
fetched=$cache/sources

# Sets `tarball` and `packaged`, the package's version; returns 1 if the source is not here.
find_source() { # version
    local name=linux-source-$1
    tarball=/usr/src/$name.tar.xz
    if [ -e "$tarball" ]; then
        packaged=$(dpkg-query -W -f '${Version}' "$name")
        return
    fi
    tarball=$fetched/$1/$name.tar.xz
    [ -e "$tarball" ] || return 1
    packaged=$(<"$fetched/$1/version")
}

# Debian's mirror, as this machine's apt has it; also where its lists were never fetched, or deleted.
mirror() {
    local places
    places=$(apt-get --print-uris update | sed -nE "s|^'(.*/debian(\.list)?/)dists/.*|\1|p")
    [ "$places" ] && echo "${places%%$'\n'*}"
}

# Prints the configuration of an apt that keeps everything in a folder.
apt_in() { # folder
    cat <<END
Dir::State "$1/state";
Dir::State::status "$1/status";
Dir::Cache "$1/cache";
Dir::Etc::SourceList "$1/debian.sources";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Architectures { "amd64"; };
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
END
}

list_sources() { # mirror, suite
    local keyring
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\n' "$1" "$2"
    for keyring in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
        [ ! -e "$keyring" ] || { printf 'Signed-By: %s\n' "$keyring" && break; }
    done
}

# Why apt failed: what is wrong with a signature, or else its first error.
reason() { # file with what it said
    { grep -m 1 -iE '^[EW]: .*(signature|not signed)' "$1" || grep -m 1 '^E: ' "$1"; } |
        sed -E 's/^[EW]: //; s/^.* (GPG error: )/\1/'
}

# Ends with why apt failed, and what to do.
cannot_fetch() { # package, suite, mirror, file with what apt said
    local why hint="it comes from $3; is the network there?"
    why=$(reason "$4")
    [[ $why != *[Ss]ign* && $why != *'Hash Sum'* ]] ||
        hint="what $3 has is not what Debian signed: try again later, or with another mirror in apt's sources"
    die "cannot fetch $1 of $2: $why" "$hint"
}

# Fetches 6.1 without apt; returns 1 if the version is not listed, or nowhere.
fetch_by_hash() { # version
    local deb file new=$fetched/.new
    deb=$(sed -n 's/^\(linux-source-'"$1"'_[^ ]*\) .*/\1/p' "$here/../foreign/linux.list")
    [ "$deb" ] || return 1
    say "fetching $deb, about 140 MB, once"
    file=$(python3 "$here/../foreign/fetch.py" "$deb") || return 1
    rm -rf "$new"
    mkdir -p "$new"
    cut -d_ -f2 <<<"$deb" >"$new/version"
    ar p "$file" data.tar.xz | xz -dc | tar -xO "./usr/src/linux-source-$1.tar.xz" \
        >"$new/linux-source-$1.tar.xz" || die "cannot unpack $file" "is the disk full? (df -h $fetched)"
    mv -T "$new" "$fetched/$1"
}

# Fetches the package; a second build at the same time waits, and finds it.
fetch_source() { # version
    local name=linux-source-$1 suite root place
    mkdir -p "$fetched" || die "cannot make $fetched" "set XDG_CACHE_HOME to a directory of yours"
    exec 8>"$fetched/lock"
    flock 8
    ! find_source "$1" || return 0
    if fetch_by_hash "$1"; then
        exec 8>&-
        return
    fi
    place=$(command -v apt-get >/dev/null && mirror) ||
        die "linux-source-$1 is not here, and apt knows no mirror of Debian's" \
            "apt-get install linux-source-$1, or add a mirror to apt's sources"
    suite=$(<"$here/$1/suite")
    rm -rf "$fetched"/.apt.* # what a killed one left
    root=$(mktemp -d "$fetched/.apt.XXXXXX")
    # shellcheck disable=SC2064  # this folder
    trap "rm -rf '$root' '$recipe'" EXIT
    mkdir -p "$root"/{state,cache/archives/partial,new}
    touch "$root/status"
    apt_in "$root" >"$root/apt.conf"
    list_sources "$place" "$suite" >"$root/debian.sources"
    say "fetching $name of $suite, about 150 MB, once"
    (cd "$root" && apt-get -q -c "$root/apt.conf" update &&
        apt-get -q -c "$root/apt.conf" download "$name") >"$root/log" 2>&1 ||
        cannot_fetch "$name" "$suite" "$place" "$root/log"
    dpkg-deb -f "$root/$name"_*.deb Version >"$root/new/version"
    dpkg-deb --fsys-tarfile "$root/$name"_*.deb |
        tar -xO "./usr/src/$name.tar.xz" >"$root/new/$name.tar.xz" ||
        die "cannot unpack $name" "is the disk full? (df -h $fetched)"
    mv -T "$root/new" "$fetched/$1" ||
        die "cannot write $fetched/$1" "is it yours?"
    rm -rf "$root"
    exec 8>&-
}

# Finds the source, or fetches it.
need_source() { # version
    if ! find_source "$1"; then
        fetch_source "$1"
        find_source "$1"
    fi
}

# Sets `asked` to a folder with the configurations that a version's own tests ask for, unpacked once.
asked_of() { # version, whose source was found
    local new
    asked=$cache/asked/$1-$packaged
    [ ! -d "$asked" ] || return 0
    mkdir -p "$cache/asked" || die "cannot make $cache" "set XDG_CACHE_HOME to a directory of yours"
    new=$(mktemp -d "$cache/asked/.new.XXXXXX")
    xz -T0 -dc "$tarball" | tar -x -C "$new" --strip-components=1 --wildcards \
        '*/tools/testing/selftests/*/config' || die "cannot unpack $tarball" "is the disk full? (df -h $cache)"
    mv -T "$new" "$asked" 2>/dev/null || rm -rf "$new" # another did
}
