#!/usr/bin/env bash
# Sets up the testbed: packages of Debian and its descendants, a Python environment, the guest kernel.
# It skips what is already there, so a second call takes seconds and needs neither root nor the
# network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The builds of the others fetch their sources, as that of 6.1 does where this is not Debian; the
# stored numbers are of 6.1.
kernel_source() {
    if grep -qs '^VERSION_ID="12"$' /etc/os-release; then
        echo linux-source-6.1
    elif grep -qsx 'ID=debian' /etc/os-release; then
        echo linux-source-6.12
    fi
}

readonly LAB_PACKAGES=(
    bridge-utils ethtool hostapd iperf3 iproute2 iputils-ping iw kmod mininet nginx procps
    python3-venv tcpdump tshark util-linux
)
KERNEL_PACKAGES=(
    bc bison flex gcc libc6-dev make patch perl-base tar xz-utils
)
mapfile -t -O ${#KERNEL_PACKAGES[@]} KERNEL_PACKAGES < <(kernel_source)
readonly TEST_PACKAGES=(
    bpftool chromium-headless-shell clang curl gdb libbpf-dev shellcheck vagrant wget
)

readonly PYTHON=/usr/bin/python3 # Debian's own: only this one finds Debian's Mininet

usage() {
    cat <<'END'
usage: ./setup.sh [demo | test [--all]]

  ./setup.sh         install everything
  ./setup.sh demo    install, then run the router-bottleneck experiment and draw its figures
  ./setup.sh test    install, then run the tests; --all: the slow ones, too

Tests run as an ordinary user, also if root calls this; the few that need root then run as root.

Root or sudo is needed only if Debian packages are missing.
Example: ./setup.sh demo
END
}

say() { printf '==> %s\n' "$1"; }

die() { # MESSAGE HINT
    printf 'setup.sh: %s\n    hint: %s\n' "$1" "$2" >&2
    exit 1
}

# The prefix that runs a command as the user who called sudo: after `sudo ./setup.sh` the
# environment, the kernel cache and the results must not belong to root.
AS_USER=()
become_caller() {
    : "${HOME:=$(getent passwd "$EUID" | cut -d: -f6)}"
    if ((EUID == 0)) && ! [[ -O $HOME ]]; then # another user's, after `su -m`
        HOME=$(getent passwd 0 | cut -d: -f6)
    fi
    export HOME
    USER_HOME=$HOME
    if ((EUID != 0)) || [[ ${SUDO_UID:-0} == 0 ]]; then
        return
    fi
    USER_HOME=$(getent passwd "$SUDO_UID" | cut -d: -f6)
    AS_USER=(
        setpriv --reuid "$SUDO_UID" --regid "$SUDO_GID" --init-groups
        env -u SUDO_UID -u SUDO_GID -u SUDO_USER -u SUDO_COMMAND
        "HOME=$USER_HOME" "USER=$SUDO_USER" "LOGNAME=$SUDO_USER"
    )
}

check_machine() {
    "${AS_USER[@]}" test -w . ||
        die "$PWD: ${SUDO_USER:-$(id -un)} has no write permission" \
            "work in a clone of your own, or run setup.sh as the owner: $(stat -c %U .)"
}

missing_packages() { # PACKAGE… → those that are not installed, one per line
    # dpkg-query fails if it does not know one of them, but still prints those that it knows
    { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } |
        sed -n 's/^installed //p' | sort -u | comm -13 - <(printf '%s\n' "$@" | sort -u)
}

can_be_root() {
    ((EUID == 0)) && return
    command -v sudo >/dev/null || return 1
    sudo -n true 2>/dev/null && return
    # a password can only be typed at a terminal
    [[ -t 0 && ${CI:-} != true ]] && sudo -v
}

install_packages() { # PACKAGE… ; starts the kernel's compiler as soon as its packages are there
    local missing first rest
    if ! command -v dpkg-query >/dev/null; then
        require_programs
        start_kernel
        return
    fi
    mapfile -t missing < <(missing_packages "$@")
    if ((${#missing[@]} == 0)); then
        say "Debian packages: all $# are installed"
        start_kernel
        return
    fi
    can_be_root ||
        die "these packages are missing, and you have neither root nor sudo: ${missing[*]}" \
            "ask an administrator to run: apt-get install --no-install-recommends ${missing[*]}"
    mapfile -t first < <(missing_packages "${KERNEL_PACKAGES[@]}")
    mapfile -t rest < <(comm -13 <(printf '%s\n' "${first[@]}") <(printf '%s\n' "${missing[@]}"))
    update_lists
    apt_install "${first[@]}"
    start_kernel
    apt_install "${rest[@]}"
}

# Where packages are not Debian's, somebody else installs what compiling takes; `testbed check` says
# what else could be there.
require_programs() {
    local program missing=()
    for program in ar bc bison flex gcc make patch perl setpriv tar xz; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    ((${#missing[@]} == 0)) ||
        die "these programs are missing: ${missing[*]}" \
            "dnf install bc binutils bison flex gcc glibc-devel glibc-static make patch perl tar util-linux xz; or pacman -S base-devel bc"
}

as_root() { # COMMAND…
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# noninteractive: tshark and iperf3 would ask (may others capture? start a daemon?) and wait for an
# answer; this way they take their defaults: no.
apt_get() { # ARGUMENT…
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Use-Pty=0 "$@" </dev/null
}

update_lists() {
    say "Debian packages: fetching the lists"
    apt_get update || die "apt-get update failed" "apt's own message is above; is the network up?"
}

apt_install() { # PACKAGE…
    (($#)) || return 0
    say "Debian packages: installing $* (a minute or two)"
    forbid_services
    apt_get install --yes --no-install-recommends "$@" >/dev/null ||
        die "apt-get install failed" \
            "apt's own message is above"
    allow_services
    local service
    for service in nginx hostapd; do
        if [[ " $* " == *" $service "* ]] && command -v systemctl >/dev/null; then
            as_root systemctl disable --quiet "$service" 2>/dev/null || true # no manager runs
        fi
    done
}

# nginx and hostapd are needed as programs, not as services: no web server on port 80, now or after
# the next boot.
readonly POLICY=/usr/sbin/policy-rc.d # Debian asks it whether a new package's service may start
readonly BY_US='# while setup.sh of the TCP testbed installs packages: process'
FORBIDDEN= # whether the file is ours

is_left() { # FILE: did a setup.sh that was killed leave it?
    local process
    process=$(sed -n "s/^$BY_US //p" "$1" 2>/dev/null) || return 1
    [[ $process && ! -e /proc/$process ]]
}

forbid_services() {
    [[ -e $POLICY ]] && ! is_left "$POLICY" && return # the administrator's own
    printf '#!/bin/sh\n%s %s\nexit 101\n' "$BY_US" $$ | as_root install -m 755 /dev/stdin "$POLICY"
    FORBIDDEN=true
}

allow_services() {
    [[ $FORBIDDEN ]] || return 0
    FORBIDDEN=
    as_root rm -f "$POLICY"
}

is_stamped() { # FILE VALUE: was the step completed for this value?
    [[ -f $1 && $(<"$1") == "$2" ]]
}

stamp() { # FILE VALUE
    # shellcheck disable=SC2016  # $1 and $2 belong to the inner shell
    "${AS_USER[@]}" sh -c 'printf "%s\n" "$2" >"$1"' sh "$1" "$2"
}

LOCKED=(--no-deps --require-hashes --requirement requirements.lock)

pip() {
    "${AS_USER[@]}" .venv/bin/python -m pip "$1" --quiet --no-input --disable-pip-version-check \
        "${@:2}"
}

install_wheels() { # the folder that they are in
    pip install "${LOCKED[@]}" --ignore-installed --no-compile --no-index --find-links "$1" </dev/null
}

packages_are_whole() { # else says which is not
    "$PYTHON" -I testbed/machine/installed_packages.py .venv/lib/python*/site-packages
}

install_python_packages() {
    local version key
    version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    # with the path, because scripts in .venv contain it: a moved clone needs a new environment
    key=$({ cat requirements.lock && echo "$version $PWD"; } | sha256sum | cut -d' ' -f1)
    if [[ -x .venv/bin/python ]] && is_stamped .venv/lock.stamp "$key" && packages_are_whole; then
        say "Python packages: as locked"
        return
    fi
    say "Python packages: making .venv from requirements.lock (about a minute)"
    # --system-site-packages: for Debian's Mininet. --ignore-installed: the environment gets a copy
    # of its own even where Debian has the locked version.
    "${AS_USER[@]}" "$PYTHON" -m venv --clear --system-site-packages .venv ||
        die "could not make .venv" "remove it and run setup.sh again: rm -rf .venv"
    # wheels are kept outside the clone, for the next one
    local -r wheels=${XDG_CACHE_HOME:-$USER_HOME/.cache}/tcp-testbed/wheels
    "${AS_USER[@]}" mkdir -p "$wheels" ||
        die "could not make $wheels" "set XDG_CACHE_HOME to a folder of yours"
    if ! install_wheels "$wheels" 2>/dev/null; then
        pip download "${LOCKED[@]}" --dest "$wheels" </dev/null ||
            die "could not download the locked Python packages" \
                "pip's own message is above; is the package index reachable?"
        install_wheels "$wheels" ||
            die "could not install the locked Python packages" "pip's own message is above"
    fi
    # pip would compile them on one core. Some have files that are no Python, as examples; and half
    # of it all is their own tests, and what hardly runs or is compiled to C already.
    "${AS_USER[@]}" .venv/bin/python -m compileall -qq -j 0 \
        -x '/tests?/|/(pip|debugpy|mypyc?)/' .venv/lib || true
    stamp .venv/lock.stamp "$key"
}

install_project() {
    local key
    key=$(sha256sum <pyproject.toml | cut -d' ' -f1)
    if ! [[ -x .venv/bin/testbed ]] || ! is_stamped .venv/project.stamp "$key"; then
        say "testbed: installing into .venv (seconds)"
        pip install --no-deps --no-index --no-build-isolation --editable . </dev/null ||
            die "could not install the testbed into .venv" \
                "remove it and run setup.sh again: rm -rf .venv"
        stamp .venv/project.stamp "$key"
    fi
    # ^C while Python starts would end in its traceback: it waits for experiments/command.py
    "${AS_USER[@]}" sed -i '1s|^#!\(/[[:alnum:]/._-]*\)$|#!/usr/bin/env -S --block-signal=INT \1|' \
        .venv/bin/testbed
}

compile_programs() {
    local damaged # what has changed since it was compiled is compiled again
    mapfile -t damaged < <(cd .venv/lib && cat testbed-*.sha256 2>/dev/null |
        sha256sum --check --quiet 2>/dev/null | sed -n 's/: FAILED.*//p')
    ((${#damaged[@]} == 0)) || "${AS_USER[@]}" rm -f "${damaged[@]/#/.venv/lib/}"
    "${AS_USER[@]}" make --silent --jobs "$(nproc)" ||
        die "could not compile the testbed's programs" "the compiler's own message is above"
}

BESIDE=       # the process of the tests that need root
KERNEL_BUILD= # the process that builds the kernel while the rest is installed
IMAGES=("") # the options of kernel/image.sh for each image that is needed: none for scenarios'

start_kernel() {
    local option missing=()
    for option in "${IMAGES[@]}"; do
        # shellcheck disable=SC2086  # no option is no word
        "${AS_USER[@]}" kernel/image.sh --whole $option &>/dev/null || missing+=("$option")
    done
    if ((${#missing[@]} == 0)); then
        say "guest kernel: built"
        return
    fi
    say "guest kernel: building, once, while the rest is installed; two to four minutes on two cores"
    # It reports progress on stderr, a line at a time as that is no terminal; stdout is only the
    # directory. In a session of its own, so that all its processes can be ended together.
    # shellcheck disable=SC2016  # of the inner shell
    setsid "${AS_USER[@]}" bash -c 'for option; do kernel/image.sh $option || exit; done' bash \
        "${missing[@]}" >/dev/null 2> >(exec cat >&2) &
    KERNEL_BUILD=$!
}

finish_kernel() {
    [[ $KERNEL_BUILD ]] || return 0
    local status=0
    wait "$KERNEL_BUILD" || status=$?
    KERNEL_BUILD=
    ((status == 0)) ||
        die "could not build the guest kernel" "the reason is above; then run setup.sh again"
}

clean_up() {
    allow_services
    [[ ! $BESIDE ]] || kill -INT "$BESIDE" 2>/dev/null || true
    [[ $KERNEL_BUILD ]] || return 0
    kill -- "-$KERNEL_BUILD" 2>/dev/null || true
    wait "$KERNEL_BUILD" 2>/dev/null || true # it removes what it has half built
}

set_up() { # PACKAGE…
    trap clean_up EXIT
    become_caller
    check_machine
    if is_left "$POLICY" && can_be_root; then
        FORBIDDEN=true # clean_up removes it
    fi
    install_packages "$@"
    install_python_packages
    install_project
    compile_programs
    finish_kernel
}

# The prefix that runs tests as an ordinary user without any rights. Where there is only root, that is
# one without a name, with its own folder of caches.
AS_TESTER=()
readonly TESTER=65533 TESTER_HOME=/var/cache/tcp-testbed-tests
become_tester() {
    if ((EUID != 0 || ${#AS_USER[@]})); then
        AS_TESTER=("${AS_USER[@]}")
        return
    fi
    AS_TESTER=(
        setpriv --reuid "$TESTER" --regid "$TESTER" --clear-groups --inh-caps=-all
        --bounding-set=-all --no-new-privs
        env -i "PATH=$PATH" "HOME=$TESTER_HOME" USER=tester LOGNAME=tester "TERM=${TERM:-dumb}"
        "LANG=${LANG:-C.UTF-8}" "RUFF_CACHE_DIR=$TESTER_HOME/.cache/ruff"
    )
    "${AS_TESTER[@]}" sh -c 'test -r setup.sh && test -x .venv/bin/python' ||
        die "$PWD: only root can read it, and the tests run as another user" \
            "clone it where all users may read, as in /srv; or run this as an ordinary user"
    install -d -m 700 -o "$TESTER" -g "$TESTER" "$TESTER_HOME"
    # git refuses a clone of another user's, as this one is
    "${AS_TESTER[@]}" git config --global safe.directory '*'
    # They get root's kernels. They write them themselves: root follows no link in that folder.
    tar -C "${XDG_CACHE_HOME:-$HOME/.cache}/tcp-testbed" --exclude='kernel/.*' --exclude='*.log' \
        -cf - kernel | "${AS_TESTER[@]}" sh -c \
        'mkdir -p ~/.cache/tcp-testbed && tar -C ~/.cache/tcp-testbed --skip-old-files -xf -'
}

# To collect all files for the few tests that root runs would take as long as these tests.
readonly OF_ROOT='mark\.(as_)?root|NEEDS_ROOT|loads_programs' OF_THE_HOST='mark\.host'

files_with() { # PATTERN FOLDER… → the files of tests that have it
    grep -rlE --include='test_*.py' "$@"
}

run_tests() { # OPTION…
    # ^C is for them, also if this, or one of them, is in the background, where shells ignore it
    local pytest=(env --default-signal=INT .venv/bin/python -m pytest -p no:cacheprovider -rs "$@")
    local status=0 output files
    local folders=(tests/unit experiments tests/golden tests/system tests/robustness)
    # shellcheck disable=SC2016  # of the inner shell
    local -r state=$("${AS_TESTER[@]}" sh -c 'echo "${XDG_STATE_HOME:-$HOME/.local/state}"')
    # compiled once, and not by each of the processes that tests start
    unset PYTHONDONTWRITEBYTECODE
    "${AS_USER[@]}" .venv/bin/python -m compileall -q -j 0 \
        analysis benchmarks experiments testbed tests topologies
    if ((EUID == 0 && ${#AS_USER[@]} == 0)); then
        output=$(mktemp)
        mapfile -t files < <(files_with "$OF_ROOT" "${folders[@]}")
        "${pytest[@]}" -m "(root or as_root) and not host" "${files[@]}" \
            </dev/null >"$output" 2>&1 &
        BESIDE=$!
    fi
    # side by side, one file per process, and one process more than cores, as tests often wait
    "${AS_TESTER[@]}" "${pytest[@]}" -n "$(($(nproc) + 1))" --dist loadscope \
        --no-loadscope-reorder --durations-file "$state/tcp-testbed/durations.json" \
        "${folders[@]}" || status=$?
    [[ $BESIDE ]] || return "$status"
    say "test: what needs root"
    wait "$BESIDE" || status=$?
    BESIDE=
    cat "$output" && rm -f "$output"
    if [[ $* == --all ]]; then
        say "test: what judges the times of this machine's kernel, alone"
        mapfile -t files < <(files_with "$OF_THE_HOST" "${folders[@]}")
        "${pytest[@]}" -m host "${files[@]}" || status=$?
    fi
    return "$status"
}

# The guest's kernel is User-Mode Linux, which runs on x86 alone.
refuse_other_machines() {
    if [[ $HOSTTYPE != x86_64 ]]; then
        die "this machine is $HOSTTYPE: trials need x86-64" \
            "use a remote x86-64 machine by ssh; an emulated container (--platform linux/amd64) has no ptrace, which the guest needs"
    fi
}

main() {
    if (($# > 2)) || [[ $# == 2 && "$*" != "test --all" ]]; then
        usage >&2
        exit 2
    fi
    [[ ${1-} == -h || ${1-} == --help ]] || refuse_other_machines
    case ${1-} in
        "")
            set_up "${LAB_PACKAGES[@]}" "${KERNEL_PACKAGES[@]}"
            say "ready: .venv/bin/testbed check shows what this machine can run"
            ;;
        demo)
            set_up "${LAB_PACKAGES[@]}" "${KERNEL_PACKAGES[@]}"
            "${AS_USER[@]}" .venv/bin/testbed demo
            ;;
        test)
            IMAGES+=("--flavour machine") # the tests of whole programs (docs/mininet.md)
            [[ ${2-} != --all ]] || IMAGES+=(--symbols) # those of rewind
            set_up "${LAB_PACKAGES[@]}" "${KERNEL_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
            become_tester
            say "test: linters and unit tests first, then real trials, as an ordinary user"
            run_tests "${@:2}"
            ;;
        -h | --help) usage ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
}

main "$@"
