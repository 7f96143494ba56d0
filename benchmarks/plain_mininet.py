"""A program's run with plain Mininet, as root on this host, to compare the guest's run with.

It runs in real time and in separate namespaces: its changes of files and networks are gone when it
ends, and so are all its processes. Open vSwitch has its datapath in user space, since few hosts of
containers have the kernel module.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.harness import processor_s
from testbed.errors import UsageError
from testbed.guest.machine import PROGRAMS, root_environment
from testbed.machine.process import require
from testbed.programs.program_runs import MAX_OUTPUT_BYTES

NAMESPACES = (
    *("unshare", "--fork", "--kill-child", "--mount-proc"),
    *("--mount", "--net", "--pid", "--ipc", "--uts"),
)
# The arguments are the program's folder, the guest's `controller`, and the command.
PREPARE = r"""
set -e
folder=$1
controller=$2
shift 2
mount -t tmpfs tmpfs /run
mkdir -p /run/openvswitch /run/lock /run/folder /run/python /run/programs
ln -s "$controller" /run/programs # Debian's controller has another name
mount --bind "$folder" /run/folder
mount -t tmpfs tmpfs /tmp
mkdir -p "$folder"
changes() { # of a folder, kept in memory
    mkdir -p "/run/changed$2" "/run/work$2"
    mount -t overlay overlay -o "lowerdir=$1,upperdir=/run/changed$2,workdir=/run/work$2" "$2"
}
changes /run/folder "$folder"
for place in /etc /root /var; do changes $place $place; done
mkdir -p /var/run
mount -t sysfs sysfs /sys # without the host's control groups
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --bind /proc/sys/net /proc/sys/net
mount -o remount,bind,rw /proc/sys/net
ip link set lo up

cp -r /usr/lib/python3/dist-packages/mininet /run/python
export PYTHONPATH=/run/python
sed -i "s/datapath='kernel'/datapath='user'/" /run/python/mininet/node.py
echo "def fixLimits(): pass # of the host" >>/run/python/mininet/util.py
# no device completes the checksums of what it forwards
cat >>/run/python/mininet/link.py <<'END'
def config_without_offload(self, config=Intf.config, **settings):
    result = config(self, **settings)
    self.cmd("ethtool -K", self, "tx off")
    return result
Intf.config = config_without_offload
END
# as in the guest: with iperf 2.1 it would wait for ever
sed -i "s/count = 2 if l4Type == 'TCP' else 1/count = 1/" /run/python/mininet/net.py
if [ -x /usr/sbin/ovs-vswitchd ]; then
    {
        ovsdb-tool create /run/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema
        ovsdb-server /run/openvswitch/conf.db --remote=punix:/run/openvswitch/db.sock --detach \
            --pidfile --no-chdir --log-file=/run/openvswitch/server.log -vconsole:off
        ovs-vsctl --no-wait init
        ovs-vswitchd --disable-system --detach --pidfile --no-chdir \
            --log-file=/run/openvswitch/switch.log -vconsole:off
    } >/run/openvswitch/start.log 2>&1
fi
set +e
cd "$folder"
"$@"
"""
LACKING = "qdisc kind is unknown"  # what tc says if the kernel has no such queue
LOOK_S = 0.2
VARYING = re.compile(r"[0-9a-f]{1,4}(::?[0-9a-f]{1,4})+|\d+(\.\d+)?")  # addresses and numbers


@dataclass(frozen=True)
class ProgramOutput:
    """The output of a program."""

    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True)
class PlainRun:
    """A program's run with plain Mininet."""

    status: str
    wall_s: float
    processor_s: float
    output: ProgramOutput


def run_plain(folder: Path, command: Sequence[str], patience_s: float) -> PlainRun:
    """Run a program with plain Mininet, without input, and end it after `patience_s`."""
    require("unshare")
    if os.geteuid() != 0:
        raise UsageError("plain Mininet needs root", "leave out --beside-plain")
    argv = (
        *NAMESPACES,
        "/bin/sh",
        "-c",
        PREPARE,
        "plain",
        str(folder),
        str(PROGRAMS / "controller"),
        *command,
    )
    begun, used = time.monotonic(), processor_s()
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=root_environment(Path("/root"), {}, ()),
        )
        try:
            while process.poll() is None and time.monotonic() - begun < patience_s:
                time.sleep(LOOK_S)
                if LACKING in _text(stderr):
                    break  # what it would do in real time is another laboratory
            status = "not at its end" if process.poll() is None else f"{process.returncode}"
        finally:
            process.kill()  # and with it all that runs in its namespaces
            process.wait()
        output = ProgramOutput(_text(stdout), _text(stderr))
    return PlainRun(status, time.monotonic() - begun, processor_s() - used, output)


def _text(file: IO[str]) -> str:
    """Return what a process has written so far, without moving its position in the file."""
    return os.pread(file.fileno(), MAX_OUTPUT_BYTES, 0).decode(errors="replace")


def compared(ours: ProgramOutput, plain: ProgramOutput) -> str:
    """Say in a few words how the output of the guest's run differs from plain Mininet's."""
    if LACKING in plain.stdout + plain.stderr:
        return "this host's kernel lacks its queues"
    if ours == plain:
        return "the same"
    for name in ("stdout", "stderr"):
        here, there = (getattr(side, name).splitlines() for side in (ours, plain))
        for number in range(max(len(here), len(there))):
            pair = [lines[number] if number < len(lines) else "" for lines in (here, there)]
            if VARYING.sub("#", pair[0]).split() != VARYING.sub("#", pair[1]).split():
                return f"{pair[0].strip()[:40]!r}, plain {pair[1].strip()[:40]!r}"
    return "the same but for numbers"
