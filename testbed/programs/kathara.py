"""Kathará's laboratories: a folder with `lab.conf`, as a script for a guest.

Each machine of a lab is a network namespace with a host name, processes and changed files to
itself; each collision domain is a bridge. The programs are those of this machine, not those of an
image.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import UsageError, printable, quoted
from testbed.machine.safe_files import UnfitFile, read_text
from testbed.programs.network_script import (
    NETWORK_FAILED,
    capture_lines,
    start_lines,
    started_commands,
)

LAB_FILE = "lab.conf"
MAX_LAB_BYTES = 1 << 20
MAX_LAB_ENTRIES = 20_000  # files and folders
MAX_LAB_MACHINES = 200
LAB_STARTUP_S = 60  # of virtual time, after which a start-up script is ended
LAB_SETTING = re.compile(
    r"(?P<machine>[A-Za-z0-9][A-Za-z0-9_-]{0,29})\[(?P<key>\w+)\]=(?P<value>.+)", re.ASCII
)
LAB_METADATA = re.compile(r"[A-Z_]+=.*")
LAB_DOMAIN = re.compile(
    r"(?P<domain>\w+)(?:/(?P<mac>(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}))?", re.ASCII
)
LAB_SYSCTL = re.compile(r"net\.[\w.-]+=[\w. \t-]*")
NOT_DONE = {  # what Kathará does and this does not, for people
    "image": "image: the programs are this machine's",
    "bridged": "bridged: no machine reaches the Internet",
    "port": "port: no port of this machine leads there",
    "volume": "volume: no other folder is there",
    "mem": "mem: --memory is that of all together",
    "cpus": "cpus: there is one processor",
}
WITHOUT_MEANING = ("num_terms", "shell", "privileged", "ulimit")  # have no meaning here, or are so
KATHARA_EXAMPLE = "testbed mininet lab/ 'pc1: ping -c 3 10.0.0.2'"
LAB_SYSCTLS = (  # as in Kathará's containers
    *("net.ipv4.ip_forward=1", "net.ipv4.icmp_ratelimit=0", "net.ipv4.conf.all.rp_filter=0"),
)
IPV6_SYSCTLS = ("net.ipv6.conf.all.forwarding=1", "net.ipv6.icmp.ratelimit=0")
NODES = "/run/kathara"

# The first process of a machine: $1 its name, $2 the lab's folder, $3 where its files may lie.
# /root is empty at first: the host's is closed to all but its owner.
NODE_SCRIPT = """
set -e
own=$3/$1
mkdir -p $own
mount -t tmpfs tmpfs $own
mkdir -p $own/lab $own/run/programs
mount --bind "$2" $own/lab
printf %s "$1" >/proc/sys/kernel/hostname
mount -t sysfs sysfs /sys
changed=$(ls -A $own/lab/"$1" 2>/dev/null || true)
mount -t tmpfs tmpfs /root
for each in etc var srv opt $changed; do
    [ $each = root -o -d $own/upper/$each ] && continue
    mkdir -p /$each $own/upper/$each $own/scratch/$each
    upper=upperdir=$own/upper/$each,workdir=$own/scratch/$each
    mount -t overlay overlay -o lowerdir=/$each,$upper /$each
done
[ -d $own/lab/"$1" ] && cp -r --preserve=mode,timestamps,links $own/lab/"$1"/. /
mkdir -p /hostlab /shared
mount --bind $own/lab /hostlab
[ -d $own/lab/shared ] && mount --bind $own/lab/shared /shared
given=$own/lab/$1/etc
[ -e $given/hosts ] || printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n' "$1" >/etc/hosts
[ -e $given/resolv.conf ] || { rm -f /etc/resolv.conf; : >/etc/resolv.conf; }
mount --bind /run/programs $own/run/programs
touch $own/run/notes
mount --bind /run/notes $own/run/notes
mount -t tmpfs tmpfs /tmp
touch $3/$1.ready
mount --rbind $own/run /run
exec sleep infinity
"""
# $1 the machine's name; services are those of /etc/init.d, and ifupdown's plain stanzas
STARTUP_SCRIPT = """
networking() {
    awk '{ sub(/#.*/, "") }
        $1 == "iface" { i = $2 }
        $1 == "hwaddress" { print "ip link set dev " i " address " $NF }
        $1 == "address" { a = $2; if (a ~ /[/]/) print "ip address replace " a " dev " i }
        $1 == "netmask" { print "ip address replace " a "/" $2 " dev " i }
        $1 == "gateway" { print "ip route replace default via " $2 " dev " i }
        $1 ~ /^(up|post-up)$/ { sub(/^[ \t]*[^ \t]+/, ""); print }' /etc/network/interfaces | bash
}
systemctl() {
    if [ "${2%.service}" = networking ]; then networking
    elif [ -x /etc/init.d/${2%.service} ]; then /etc/init.d/${2%.service} $1
    else echo "systemctl $*: this machine has no /etc/init.d/${2%.service}" >&2; return 1; fi
}
service() { systemctl "$2" "$1"; }
export -f networking systemctl service
cd /
for each in shared "$1"; do
    if [ -f /hostlab/$each.startup ]; then bash /hostlab/$each.startup; fi
done
"""


@dataclass(frozen=True)
class LabInterface:
    """An interface of a machine, `eth` and its number, in a collision domain."""

    number: int
    domain: str
    mac: str


@dataclass(frozen=True)
class LabMachine:
    """A machine of a lab."""

    name: str
    interfaces: tuple[LabInterface, ...]
    sysctls: tuple[str, ...]
    commands: tuple[str, ...]  # of `exec`, before its start-up script
    environment: tuple[str, ...]
    ipv6: bool


@dataclass(frozen=True)
class KatharaLab:
    """A folder's laboratory, and sentences on what of it is not done."""

    folder: Path
    machines: tuple[LabMachine, ...]
    left_out: tuple[str, ...]


def is_lab(path: Path) -> bool:
    """Return whether a folder is one of Kathará's laboratories."""
    return os.path.lexists(path / LAB_FILE)


def read_lab(folder: Path) -> KatharaLab:
    """Read `lab.conf`; what leads out of the folder is refused."""
    folder = folder.absolute()
    _refuse_links_out(folder)
    try:
        text = read_text(folder / LAB_FILE, MAX_LAB_BYTES)
    except (OSError, UnfitFile, UnicodeDecodeError) as error:
        raise UsageError(f"{folder / LAB_FILE}: {error}", KATHARA_EXAMPLE) from error
    settings: dict[str, list[tuple[str, str, int]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not (line := line.strip()) or line.startswith("#") or LAB_METADATA.fullmatch(line):
            continue
        match = LAB_SETTING.fullmatch(line)
        if match is None:
            raise _fault(folder, number, f"{quoted(line)}: expected MACHINE[NUMBER]=DOMAIN")
        settings.setdefault(match["machine"], []).append(
            (match["key"], _value(folder, number, match["value"]), number)
        )
    if not 0 < len(settings) <= MAX_LAB_MACHINES:
        message = f"{len(settings)} machines: 1 to {MAX_LAB_MACHINES} are possible"
        raise UsageError(f"{folder / LAB_FILE}: {message}", KATHARA_EXAMPLE)
    machines = tuple(_machine(folder, at, *each) for at, each in enumerate(settings.items()))
    return KatharaLab(folder, machines, tuple(_left_out(folder, settings)))


def _fault(folder: Path, number: int, message: str) -> UsageError:
    return UsageError(f"{folder / LAB_FILE}:{number}: {message}", 'like pc1[0]="A"')


def _value(folder: Path, number: int, text: str) -> str:
    try:
        parts = shlex.split(text, comments=True)
    except ValueError as error:
        raise _fault(folder, number, f"{quoted(text)}: {error}") from None
    if len(parts) != 1:
        raise _fault(folder, number, f"{quoted(text)}: not one value")
    return parts[0]


def _machine(
    folder: Path, at: int, name: str, settings: Sequence[tuple[str, str, int]]
) -> LabMachine:
    interfaces = dict[int, LabInterface]()
    for key, value, number in settings:
        if not key.isdigit():
            continue
        match = LAB_DOMAIN.fullmatch(value)
        if match is None or int(key) > 255 or int(key) in interfaces:
            raise _fault(folder, number, f"{name}[{key}]={quoted(value)}: no interface")
        mac = match["mac"] or f"02:00:00:00:{at:02x}:{int(key):02x}"
        interfaces[int(key)] = LabInterface(int(key), match["domain"], mac)
    sysctls = tuple(value for key, value, _ in settings if key == "sysctl")
    for each in sysctls:
        if not LAB_SYSCTL.fullmatch(each):
            message = f"{name}: sysctl {quoted(each)}: not net.….…=VALUE"
            raise UsageError(f"{folder / LAB_FILE}: {message}", "other sysctls are all machines'")
    return LabMachine(
        name,
        tuple(interfaces[number] for number in sorted(interfaces)),
        sysctls,
        tuple(value for key, value, _ in settings if key == "exec"),
        tuple(value for key, value, _ in settings if key == "env"),
        ipv6=any(key == "ipv6" and value.lower() == "true" for key, value, _ in settings),
    )


def _left_out(folder: Path, settings: dict[str, list[tuple[str, str, int]]]) -> Iterator[str]:
    """Yield what the lab asks for and does not get, with the machines that do."""
    known = {"sysctl", "exec", "env", "ipv6", *WITHOUT_MEANING}
    asked: dict[str, list[str]] = {}
    for name, fields in settings.items():
        for key in dict.fromkeys(key for key, value, _ in fields if value.lower() != "false"):
            if not key.isdigit() and key not in known:
                asked.setdefault(key, []).append(name)
    for key, names in asked.items():
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if names[5:] else "")
        yield f"{NOT_DONE.get(key, f'{printable(key)}: not done here')} ({listed})"
    if (folder / "lab.dep").exists():
        yield "lab.dep: all machines start at once"


def _refuse_links_out(folder: Path) -> None:
    """Raise for a link in the folder that leads out of it, which its machines would follow."""
    count, real = 0, folder.resolve()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            count += 1
            if count > MAX_LAB_ENTRIES:
                message = f"more than {MAX_LAB_ENTRIES} files"
                raise UsageError(f"{folder}: {message}: not a laboratory", KATHARA_EXAMPLE)
            if path.is_symlink() and not path.resolve().is_relative_to(real):
                message = f"a link out of the laboratory, to {printable(str(path.readlink()))}"
                raise UsageError(f"{printable(str(path))}: {message}", "put the file itself there")


def lab_script(lab: KatharaLab, command: Sequence[str], captured: Sequence[str] = ()) -> str:
    """Return a script for bash that makes the lab, starts its machines and then commands in them.

    Without commands it prints what addresses each machine has.
    """
    names = [machine.name for machine in lab.machines]
    started = started_commands(command, names)
    if command and not started:
        raise UsageError(f"{quoted(command[0])}: expected MACHINE: COMMAND", KATHARA_EXAMPLE)
    wanted = _captured_interfaces(lab, captured)
    last = start_lines(started, _inside) if started else map(_addresses, names)
    lines = (*_set_up(lab), *_captures(wanted), *_start_ups(lab), "trap - ERR", *last)
    return "\n".join(lines)


def _set_up(lab: KatharaLab) -> Iterator[str]:
    yield f"trap 'echo \"testbed: failed: $BASH_COMMAND\" >&2; exit {NETWORK_FAILED}' ERR"
    yield f"mkdir -p {NODES}; touch /run/notes; declare -A pids"
    domains = dict.fromkeys(each.domain for m in lab.machines for each in m.interfaces)
    bridges = {domain: f"domain{number}" for number, domain in enumerate(domains)}
    for bridge in bridges.values():
        # frames of link-local protocols pass, but for those that a bridge never forwards
        yield f"ip link add {bridge} type bridge mcast_snooping 0 group_fwd_mask 65528"
        yield f"sysctl -qw net.ipv6.conf.{bridge}.disable_ipv6=1; ip link set {bridge} up"
    for at, machine in enumerate(lab.machines):
        name = machine.name
        ipv6 = IPV6_SYSCTLS if machine.ipv6 else ("net.ipv6.conf.all.disable_ipv6=1",)
        yield f"ip netns add {name}"
        for each in machine.interfaces:
            port = f"port{at}-{each.number}"
            peer = f"name eth{each.number} address {each.mac} netns {name}"
            yield f"ip link add {port} type veth peer {peer}"
            yield f"sysctl -qw net.ipv6.conf.{port}.disable_ipv6=1"
            yield f"ip link set {port} master {bridges[each.domain]} up"
        settings = shlex.join((*LAB_SYSCTLS, *ipv6, *machine.sysctls))
        yield f"ip netns exec {name} sysctl -qw {settings}"
        for interface in ("lo", *(f"eth{each.number}" for each in machine.interfaces)):
            yield f"ip -n {name} link set {interface} up"
        command = shlex.join(["bash", "-c", NODE_SCRIPT, "node", name, str(lab.folder), NODES])
        apart = "unshare --mount --uts --ipc --pid --fork --mount-proc"
        yield f"nsenter --net=/run/netns/{name} {apart} {command} & pids[{name}]=$!"
    for name in (machine.name for machine in lab.machines):
        yield f"until [ -e {NODES}/{name}.ready ]; do kill -0 ${{pids[{name}]}}; sleep 0.01; done"
        yield f"pids[{name}]=$(pgrep -P ${{pids[{name}]}})"


def _inside(name: str, argv: Sequence[str]) -> str:
    """Return the command that runs words in a machine."""
    return f"nsenter -t ${{pids[{name}]}} -m -u -i -n -p --wd=/ {shlex.join(argv)}"


def _start_ups(lab: KatharaLab) -> Iterator[str]:
    """Yield what starts all machines at once and waits for them; their output has their names."""
    for machine in lab.machines:
        name = machine.name
        commands = "\n".join((*machine.commands, STARTUP_SCRIPT))
        argv = ["env", *machine.environment, "timeout", str(LAB_STARTUP_S)]
        inside = _inside(name, [*argv, "bash", "-c", commands, "startup", name])
        # a pipe would not end before all that the script leaves running
        yield f"{inside} > >(sed -u 's/^/{name}| /') 2>&1 </dev/null & starting+=($!)"
    yield 'wait "${starting[@]}" || true'


def _addresses(name: str) -> str:
    return f"{_inside(name, ['ip', '-brief', 'address', 'show', 'up'])} | sed 's/^/{name}| /'"


def _captured_interfaces(
    lab: KatharaLab, captured: Sequence[str]
) -> list[tuple[str, LabInterface]]:
    """Return the interfaces that are named: `all`, machines, `pc1:0`, `pc1-eth0`."""
    named: dict[str, list[tuple[str, LabInterface]]] = {"all": []}
    for machine in lab.machines:
        interfaces = [(machine.name, each) for each in machine.interfaces]
        named["all"] += interfaces
        named[machine.name] = interfaces
        for name, each in interfaces:
            named[f"{name}:{each.number}"] = named[f"{name}-eth{each.number}"] = [(name, each)]
    for name in captured:
        if name not in named:
            raise UsageError(
                f"--capture {quoted(name)}: the lab has no such interface", "all, pc1, or pc1:0"
            )
    return list(dict.fromkeys(each for name in captured for each in named[name]))


def _captures(wanted: Sequence[tuple[str, LabInterface]]) -> Iterator[str]:
    """Yield lines that have the guest's kernel write packets."""
    for name, each in wanted:
        interface = f"eth{each.number}"
        yield from capture_lines(name, interface, f"{name}-{interface}")
