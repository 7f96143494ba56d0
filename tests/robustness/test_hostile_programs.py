"""What a hostile program does to the host by `testbed exec`: nothing, and it ends with a line."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.command import main
from testbed.programs import program_runs as programs
from testbed.store.names import MACHINE_FILES
from tests.lab import PATIENCE_S, alive, wait_until

TESTBED = (sys.executable, "-m", "experiments", "exec", "--out", "out")
FORKS = "/usr/bin/python3 -c 'import os\nwhile True: os.fork()'"
REBOOTS = "/usr/bin/python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x1234567)'"
FILLS = """
    for folder in . /tmp /var/tmp /dev/shm /run /dev /sys/fs/cgroup; do
        dd if=/dev/zero of=$folder/large bs=1M
    done
"""


def execute(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in the guest; its folder is `work` in ours."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return subprocess.run(
        [*TESTBED, *options, "--", "sh", "-c", script],
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def host_settings() -> list[str]:
    return [Path("/proc/sys", name).read_text() for name in ("kernel/hostname", "vm/swappiness")]


def test_what_is_written_elsewhere_is_gone(tmp_path: Path) -> None:
    settings = host_settings()
    (tmp_path / "precious").write_text("precious")
    done = execute(
        tmp_path,
        f"""
        rm -rf {tmp_path}/precious /etc/hostname /etc/apt
        echo x >{tmp_path}/new; echo x >/etc/testbed-new; chmod 777 /etc/shadow; touch /new
        echo changed >/proc/sys/kernel/hostname; sysctl -qw vm.swappiness=7; date -qs 2000-01-01
        mount -o remount,rw /; rm -rf /proc/1/root/run/trial/*; umount -l /proc
        ls {tmp_path}
        """,
    )
    assert done.stdout == "new\nwork\n", done.stderr
    assert host_settings() == settings and time.gmtime().tm_year > 2000
    assert (tmp_path / "precious").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "work"]
    assert not Path("/etc/testbed-new").exists() and not Path("/new").exists()


def test_links_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "down").symlink_to(tmp_path)
    script = f"""
        ln -s {tmp_path}/precious link; echo changed >link
        rm down; mkdir down; echo changed >down/precious
        mkdir -p /etc/x; echo x >/etc/x/y; ln -s /etc/x out
    """
    done = execute(tmp_path, script, "--in-place")
    assert done.returncode == 0
    assert "down/precious: not copied: something else is in its place" in done.stderr
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "work" / "down").is_symlink()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("stream", [1, 2])
def test_no_terminal_obeys_what_a_program_prints(tmp_path: Path, stream: int) -> None:
    """A program cannot set a title or the clipboard; where there is no terminal, its bytes stay."""
    script = f"printf '\\033]52;c;AAAA\\007\\033[2Jshown' >&{stream}"
    ours, terminal = pty.openpty()
    done = subprocess.Popen(
        [*TESTBED, "--", "sh", "-c", script],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    said = b""
    with contextlib.suppress(OSError):  # the end, when all have closed it
        while part := os.read(ours, 65536):
            said += part
    os.close(ours)
    assert done.wait(PATIENCE_S) == 0, said
    assert rb"\x1b]52;c;AAAA\x07\x1b[2Jshown" in said and b"\x1b" not in said
    assert (
        b"\x1b[2Jshown"
        in (tmp_path / "out" / ("", "stdout.txt", "stderr.txt")[stream]).read_bytes()
    )


def open_to_others(folder: Path) -> list[str]:
    """What others could read, if the folders above let them pass."""
    return [str(path) for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


def test_others_cannot_read_what_a_program_read(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "secret").write_text("secret")
    (work / "secret").chmod(0o600)
    script = """
        umask 0; cat secret; mkdir a; cp secret a/copy; chmod -R 777 a; cp /bin/true a/program
        chmod 777 /proc/1/cwd /proc/1/cwd/*
    """
    assert execute(tmp_path, script).stdout == "secret"
    out = work / "out"
    assert (out / "files" / "a" / "copy").read_text() == "secret"
    assert open_to_others(out) == []
    assert os.access(out / "files" / "a" / "program", os.X_OK)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("script", "line"),
    [
        pytest.param("b() { b | b & }; b; sleep 30", "it had 256 processes", id="fork-bomb"),
        pytest.param(
            "trap '' TERM; b() { b | b; }; b", "it had 256 processes", id="stubborn-fork-bomb"
        ),
        pytest.param(FORKS, "it had 256 processes", id="bomb-that-never-ends-a-process"),
        pytest.param(FILLS, "No space left", id="full-disks"),
        pytest.param("echo begun; while :; do :; done", "ended after 2 s", id="endless-loop"),
        pytest.param("tail -f /dev/null", "ended after 2 s", id="endless-wait"),
        pytest.param(f"{REBOOTS}; tail -f /dev/null", "ended after 2 s", id="reboots"),
        pytest.param("kill -9 -1; sleep 1", "was ended by what ran in it", id="kills-everything"),
    ],
)
def test_the_end_is_a_line(tmp_path: Path, script: str, line: str) -> None:
    done = execute(tmp_path, script, "--limit", "2", "--memory", "256", "--timeout", "60")
    lines = done.stderr.splitlines()
    assert any(line in each for each in lines), lines[-5:]
    assert not any("Traceback" in each for each in lines)
    assert lines[-1].startswith(("testbed: ", "    hint: "))


@pytest.mark.slow
def test_all_memory(tmp_path: Path) -> None:
    """The guest's own kernel ends what takes more than the guest has, and nothing else."""
    takes = "x = []\nwhile True: x.append(b'x' * (1 << 20))"
    done = execute(tmp_path, f'/usr/bin/python3 -c "{takes}"; echo $? >status', "--memory", "256")
    status = tmp_path / "work" / "out" / MACHINE_FILES / "status"
    assert done.returncode == 0 and status.read_text() == "137\n"


@pytest.mark.slow
def test_files_that_were_written_before_a_disk_was_full(tmp_path: Path) -> None:
    """All that can be filled shares one size, which leaves memory to bring files back."""
    execute(tmp_path, f"echo kept >kept; {FILLS} rm large", "--memory", "256")
    files = tmp_path / "work" / "out" / MACHINE_FILES
    assert {path.name: path.read_text() for path in files.iterdir()} == {"kept": "kept\n"}


def test_a_capture_that_is_none_is_a_line(tmp_path: Path) -> None:
    """And the other results stay, what was observed and sampled among them."""
    lines = [f"open('/proc/1/cwd/captures/h{n}.pcapng', 'w').write('none')\n" for n in (1, 2)]
    (tmp_path / "lab.py").write_text("".join(lines))
    words = [sys.executable, "-m", "experiments", "mininet", "--capture", "h1", "--out", "out"]
    done = subprocess.run(
        [*words, "lab.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    for number in (1, 2):
        line = f"captures/h{number}.pcapng: not a pcap or pcapng capture"
        assert done.stderr.count(line) == 1, done.stderr
    assert "testbed: 0 captures in out/captures, " in done.stderr
    assert done.returncode == 0
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left >= {"machine.json", "findings.json", "flows.csv", "observed.txt", "captures"}


@pytest.mark.slow
def test_a_script_without_the_interface_that_is_captured(tmp_path: Path) -> None:
    (tmp_path / "lab.py").touch()
    words = [sys.executable, "-m", "experiments", "mininet", "--capture", "h1", "--out", "out"]
    done = subprocess.run(
        [*words, "lab.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "0 captures in out/captures" in done.stderr, done.stderr
    assert list((tmp_path / "out" / "captures").iterdir()) == []
    assert list((tmp_path / "out" / MACHINE_FILES).iterdir()) == []


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("script", "line"),
    [
        pytest.param(
            'python3 -c \'import os\nfor _ in range(990): os.mkdir("d"); os.chdir("d")\'',
            "not taken: d",
            id="deep",
        ),
        pytest.param(
            "mkdir samples; ln -s {}/precious samples/queues.csv; chmod 311 samples",
            "not taken: samples",
            id="closed-folder-with-a-link",
        ),
        pytest.param(
            "chmod 777 .; rm guest.observed; mkfifo guest.observed", "(a pipe)", id="pipe"
        ),
        pytest.param("rm guest.observed; ln -s {}/precious guest.observed", "(a link)", id="link"),
        pytest.param("truncate -s 1T guest.observed", "larger than 64 MiB", id="hole"),
    ],
)
def test_what_is_done_to_the_guests_folder_is_a_line(
    tmp_path: Path, script: str, line: str
) -> None:
    (tmp_path / "precious").write_text("precious")
    inside = f"echo kept >kept; cd /proc/1/cwd; {script.format(tmp_path)}"
    done = execute(tmp_path, inside)
    assert done.returncode == 0, done.stderr
    assert [each for each in done.stderr.splitlines() if line in each], done.stderr
    out = tmp_path / "work" / "out"
    assert (out / MACHINE_FILES / "kept").read_text() == "kept\n"
    assert (tmp_path / "precious").read_text() == "precious"
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["out"]
    assert not [path for path in out.rglob("*") if path.is_symlink() or path.is_fifo()]


BAD_FILES = """
import os, socket, stat
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
os.symlink("/etc/passwd", "link")
open("plain", "w").write("kept")
os.link("plain", "hard")
open("hole", "w").truncate(1 << 40)
name = b"\\n\\x1b]0;x\\x07$(id)\\xff" + bytes(range(1, 47)) + bytes(range(128, 256))
open(name.ljust(255, b"x"), "w").write("kept")
for mode in (0, 0o111, 0o311):
    os.mkdir(f"{mode:o}")
    open(f"{mode:o}/in", "w").write("kept")
    os.chmod(f"{mode:o}", mode)
"""


def test_of_strange_files_of_a_program_the_plain_ones_come_back(tmp_path: Path) -> None:
    done = execute(tmp_path, f"python3 -c '{BAD_FILES}'")
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "not brought back" in line]
    assert said == ["testbed: 5 links, devices or files over 1 GiB were not brought back"]
    left = [*(tmp_path / "work" / "out" / MACHINE_FILES).rglob("*")]
    folders = {path.name for path in left if path.is_dir() and not path.is_symlink()}
    files = [path for path in left if path.name not in folders]
    assert folders == {"0", "111", "311"} and len(files) == 6
    assert all(stat.S_ISREG(path.lstat().st_mode) for path in files)
    assert {path.read_text() for path in files} == {"kept"}
    assert max(len(os.fsencode(path.name)) for path in files) == 255
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["out"]


def test_endless_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It takes so little virtual time that the disk would be full before a limit of time."""
    monkeypatch.setattr(programs, "MAX_OUTPUT_BYTES", 1 << 20)
    monkeypatch.setattr(sys, "stdin", (tmp_path / "input").open("w+"))
    monkeypatch.chdir(tmp_path)
    assert main(["exec", "--", "yes"]) == 1
    assert "testbed: the program printed more than 1 MB" in capfd.readouterr().err
    assert list(tmp_path.glob("results/exec/*")) == []


def test_interrupting_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    process = subprocess.Popen(
        [*TESTBED, "--", "sh", "-c", "echo begun; while :; do :; done"],
        cwd=tmp_path / "work",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children
    os.killpg(process.pid, signal.SIGINT)
    _out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and "interrupted" in said
    wait_until(lambda: not any(alive(int(child)) for child in children))
    assert list((tmp_path / "work").iterdir()) == []
