"""What a guest does to the folder that it writes into: nothing of it reaches the host but files.

Each attack is made on the folder itself, as code in place of a guest's kernel could, as root and
as an ordinary user. Then the host takes what a run may leave, and writes what it always writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.guest.engine import LEFT_BY_TRIALS
from testbed.guest.machine import LEFT_BY_PROGRAMS
from testbed.machine import trees
from testbed.machine.trees import GuestFolder, Rule, Taken
from testbed.store.names import QUEUE_SAMPLES, RECORD
from testbed.store.writing import write_json, write_text

NOBODY = 65534
USERS = (
    pytest.param(0, id="root", marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root")),
    pytest.param(os.geteuid() or NOBODY, id="ordinary-user"),
)
RULES = (*LEFT_BY_TRIALS, *LEFT_BY_PROGRAMS)
PRECIOUS = "precious"
FEW_MANY = (3_000, 1_000_000)  # files, without and with --full

Attack = Callable[[Path], None]


def in_closed_folder(mode: int) -> Attack:
    """A link where the host will write, in a folder that its owner may not read."""

    def attack(victim: Path) -> None:
        Path("samples").mkdir()
        Path("samples/queues.csv").symlink_to(victim)
        Path("samples").chmod(mode)

    return attack


def in_place_of_a_folder(victim: Path) -> None:
    Path("flows").rename("moved")
    Path("flows").symlink_to(victim.parent)
    Path("samples").symlink_to(victim.parent)


def pipe(_victim: Path) -> None:
    os.mkfifo("guest.answers")


def device(_victim: Path) -> None:
    try:
        os.mknod("guest.answers", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:  # an ordinary user has none to give
        os.mkfifo("guest.answers")


def unix_socket(_victim: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("guest.answers")


def link_to_passwd(_victim: Path) -> None:
    Path("flows/tcp1.client.json").symlink_to("/etc/passwd")


def hard_link(victim: Path) -> None:
    os.link(victim, "flows/tcp1.client.json")


def large_hole(_victim: Path) -> None:
    with Path("captures/h1.pcapng").open("wb") as file:
        os.truncate(file.fileno(), 1 << 40)


def deep(levels: int, name: str = "d") -> Attack:
    def attack(_victim: Path) -> None:
        start = os.open(".", os.O_RDONLY)
        for _ in range(levels):
            Path(name).mkdir()
            os.chdir(name)
        os.fchdir(start)
        os.close(start)

    return attack


def deep_in_files(_victim: Path) -> None:
    Path("files").mkdir()
    os.chdir("files")
    deep(990)(_victim)
    os.chdir("..")


def strange_names(_victim: Path) -> None:
    Path("files").mkdir()
    for where in ("", "flows/", "files/"):
        for first in (b"\n", b"\x1b]0;x\x07", b"\xff", b"$(id)", b"-rf ", b"' \" ;"):
            name = first + bytes(range(1, 47)) + bytes(range(128, 255))
            Path(os.fsdecode(where.encode() + name.ljust(255, b"\x7f")[:255])).touch()


def planted_names(_victim: Path) -> None:
    """Those of files that the host itself writes later, and would write into."""
    for name in (RECORD, "scenario.json", "commands.log", "verdict.json", "reduced.json.gz"):
        Path(name).write_text("planted")
    Path("metrics.csv").symlink_to("/etc/passwd")


def a_folder_for_a_file(_victim: Path) -> None:
    Path("guest.answers").mkdir()
    Path("captures/h1.pcapng").mkdir()


def links_for_our_own(victim: Path) -> None:
    for name in ("guest.argv", "guest.console", "guest.paths", "network-up"):
        Path(name).unlink(missing_ok=True)
        Path(name).symlink_to(victim)


def set_uid(_victim: Path) -> None:
    Path("flows/program.out").write_text("")
    Path("flows/program.out").chmod(0o6777)


def closed_file(_victim: Path) -> None:
    Path("flows/tcp1.client.json").write_text("{}")
    Path("flows/tcp1.client.json").chmod(0)
    Path("flows").chmod(0)


def everything_closed(victim: Path) -> None:
    in_closed_folder(0)(victim)
    deep(20)(victim)
    for here, folders, _files in os.walk(".", topdown=False):
        for name in folders:
            if not Path(here, name).is_symlink():
                Path(here, name).chmod(0)
    Path().chmod(0)


def link_to_itself(_victim: Path) -> None:
    Path("flows/loop").symlink_to("loop")
    Path("captures/up.pcapng").symlink_to("../../..")
    Path("flows/magic").symlink_to("/proc/self/fd/3")


def too_large_in_all(_victim: Path) -> None:
    """A sparse gigabyte each, which a copy would fill the disk with."""
    Path("files").mkdir()
    for number in range(100):
        with Path(f"files/{number}").open("wb") as file:
            os.truncate(file.fileno(), 1 << 30)


def captures_of_holes(_victim: Path) -> None:
    """Each as large as one may be, and all of them to be hashed."""
    for number in range(20):
        with Path(f"captures/{number}.pcapng").open("wb") as file:
            os.truncate(file.fileno(), 1 << 36)


ATTACKS: dict[str, tuple[Attack, str]] = {  # and the line that says it; empty: nothing is said
    "folder-000": (in_closed_folder(0), "^1 thing .*: samples$"),
    "folder-0111": (in_closed_folder(0o111), "^1 thing .*: samples$"),
    "folder-0311": (in_closed_folder(0o311), "^1 thing .*: samples$"),
    "link-for-a-folder": (in_place_of_a_folder, "^3 things .*flows .a link."),
    "pipe": (pipe, r"guest\.answers \(a pipe\)"),
    "device": (device, r"guest\.answers \(a (device|pipe)\)"),
    "socket": (unix_socket, r"guest\.answers \(a socket\)"),
    "link-to-passwd": (link_to_passwd, r"flows/tcp1\.client\.json \(a link\)"),
    "hard-link": (hard_link, r"flows/tcp1\.client\.json \(a hard link\)"),
    "large-hole": (large_hole, r"captures/h1\.pcapng \(larger than 65,536 MiB\)"),
    "deep-990": (deep(990), "^1 thing .*: d$"),
    "deep-20000": (deep(20_000), "^1 thing .*: d$"),
    "deep-and-long": (deep(300, "n" * 255), "^1 thing .*: n+…$"),
    "deep-in-files": (deep_in_files, r"^1 thing .*: files(/d)+/?… \(below 100 folders\)$"),
    "strange-names": (strange_names, r"^12 things .* and 9 more$"),
    "planted-names": (planted_names, "^6 things "),
    "folder-for-a-file": (a_folder_for_a_file, "^2 things "),
    "links-for-our-own": (links_for_our_own, "^4 things "),
    "set-uid": (set_uid, ""),
    "closed-file": (closed_file, ""),
    "everything-closed": (everything_closed, "^2 things "),
    "loops": (link_to_itself, "^3 things "),
    "captures-of-holes": (captures_of_holes, r"^19 things .*\(more than 65,536 MiB in all\)"),
    "too-large-in-all": (too_large_in_all, r"^36 things .*\(more than 65,536 MiB in all\)"),
}


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that all may pass: pytest's own is closed to other users."""
    with tempfile.TemporaryDirectory(prefix="testbed-import-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def as_user(user: int, work: Callable[[], None]) -> None:
    """Do something as another user, in a process of its own."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if os.geteuid() == 0 and user:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def prepared(base: Path, user: int) -> tuple[Path, Path]:
    """A folder of results as it is before a guest starts, and a file of the user's elsewhere."""
    results, victim = base / "results", base / "home" / "precious"
    for folder in (results, results / "captures", results / "flows", victim.parent):
        folder.mkdir()
    victim.write_text(PRECIOUS)
    victim.chmod(0o600)
    (results / "guest.argv").write_text("true\n")
    for path in (results, *results.rglob("*"), victim.parent, victim):
        if os.geteuid() == 0:
            os.chown(path, user, user)
    results.chmod(0o700)
    return results, victim


def taken_after(
    attack: Callable[[], object], results: Path, rules: tuple[Rule, ...] = RULES
) -> Taken:
    """What the host takes after an attack; then it writes what it always writes."""
    with GuestFolder(results) as place:
        home = os.open(".", os.O_RDONLY)
        os.chdir(place.start_path)
        attack()
        os.fchdir(home)
        taken = place.take(rules)
    (results / RECORD).write_text("the host's")
    write_json(results, "samples/counters.json", {})
    write_text(results, QUEUE_SAMPLES, b"$(id)\n")
    return taken


def check_harmless(results: Path, victim: Path) -> None:
    assert [path.name for path in victim.parent.iterdir()] == [victim.name]
    assert victim.read_text() == PRECIOUS and stat.S_IMODE(victim.stat().st_mode) == 0o600
    assert (results / RECORD).read_text() == "the host's"
    paths = list(results.rglob("*"))
    assert not [path.name for path in paths if path.name.startswith(".guest.")]
    for path in paths:
        about = path.lstat()
        assert stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode), path
        assert stat.S_ISDIR(about.st_mode) or about.st_nlink == 1, path
        assert not about.st_mode & (stat.S_ISUID | stat.S_ISGID | 0o022), path
        assert about.st_mode & 0o600 == 0o600, path


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "deep-20000" else name
        for name in ATTACKS
    ],
)
def test_an_attack_is_a_line(base: Path, user: int, name: str) -> None:
    attack, line = ATTACKS[name]
    results, victim = prepared(base, user)
    said = base / "home-of-the-test"
    said.mkdir(mode=0o777)
    said.chmod(0o777)

    def work() -> None:
        taken = taken_after(lambda: attack(victim), results)
        (said / "line").write_text(json.dumps([str(taken), taken.refused + taken.unexpected]))

    as_user(user, work)
    text, count = json.loads((said / "line").read_text())
    assert re.search(line, text) if line else text == "", text
    assert text.isprintable() and len(text) < 500
    assert bool(count) == bool(line)
    check_harmless(results, victim)


@pytest.mark.parametrize("user", USERS)
def test_names_and_modes_of_what_is_taken(base: Path, user: int) -> None:
    """Whatever the guest made of them, their owner can read and change them, and nobody else."""
    results, victim = prepared(base, user)

    def leaves() -> None:
        set_uid(victim)
        closed_file(victim)

    as_user(user, lambda: print(taken_after(leaves, results)))
    assert stat.S_IMODE((results / "flows" / "program.out").stat().st_mode) == 0o755
    assert (results / "flows" / "tcp1.client.json").read_text() == "{}"


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True], ids=["openat2", "an-older-kernel"])
def test_many_files(base: Path, monkeypatch: pytest.MonkeyPatch, missing: bool, full: bool) -> None:
    """Those that are allowed come, as many as are allowed; those that are not are counted."""
    if missing:
        monkeypatch.setattr(trees, "OPENAT2", 10_000)
    count = FEW_MANY[full and not missing]
    results, _victim = prepared(base, os.geteuid())

    def leaves() -> None:
        Path("files/below").mkdir(parents=True)
        for number in range(count):
            Path(f"files/below/{number}").touch()
            Path(f"{number}").touch()

    tree = Rule("files/**", 1, count // 2)
    taken = taken_after(leaves, results, (*RULES[:5], tree))
    assert taken.files == count // 2 - 2  # and two folders
    assert taken.refused == count - taken.files and taken.unexpected == count
    assert f"{2 * count - taken.files:,} things" in str(taken)
    assert sum(len(files) for _, _, files in os.walk(results / "files")) == taken.files


def test_changes_while_files_are_taken(base: Path) -> None:
    """By a process that outlived the guest: only plain files of one name arrive."""
    results, victim = prepared(base, os.geteuid())
    done = threading.Event()

    def swap(folder: int) -> None:
        names = [f"flows/{number}" for number in range(50)]
        while not done.is_set():
            for name in names:
                with contextlib.suppress(OSError):
                    os.symlink(victim, "link", dir_fd=folder)
                with contextlib.suppress(OSError):
                    os.rename("link", name, src_dir_fd=folder, dst_dir_fd=folder)
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
                    os.link(victim, name, dst_dir_fd=folder)
                    os.unlink(name, dir_fd=folder)
                with contextlib.suppress(OSError):
                    made = os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=folder)
                    os.close(made)

    for _ in range(20):
        with GuestFolder(results) as place:
            folder = os.open(place.start_path, os.O_RDONLY)
            swapping = threading.Thread(target=swap, args=(folder,))
            swapping.start()
            for _ in range(10):
                place.take(RULES)
            done.set()
            swapping.join()
            done.clear()
            os.close(folder)
        (results / RECORD).write_text("the host's")
        check_harmless(results, victim)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user too")
def test_a_friend_on_the_host_does_not_reach_an_open_folder(base: Path) -> None:
    results, victim = prepared(base, 0)
    results.chmod(0o710)  # as after sudo
    os.chown(results, 0, NOBODY)
    tried = base / "tried"
    tried.mkdir()
    tried.chmod(0o777)

    def friend() -> None:
        (outer,) = results.glob(".guest.*")
        Path().chmod(0o777)

        def enter() -> None:
            for way in (outer / "guest", outer):
                try:
                    (way / "flows").symlink_to(victim)
                except OSError as error:
                    (tried / str(error.errno)).touch()

        as_user(NOBODY, enter)

    assert str(taken_after(friend, results)) == ""
    assert [path.name for path in tried.iterdir()] == ["13"]  # EACCES
    check_harmless(results, victim)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_is_mounted_there_stays_as_it_is(base: Path) -> None:
    results, victim = prepared(base, 0)
    script = (
        "import os, sys, pathlib, subprocess\n"
        "from testbed.machine.trees import GuestFolder, Rule\n"
        "with GuestFolder(pathlib.Path(sys.argv[1])) as place:\n"
        "    os.mkdir(f'{place.start_path}/files'); there = os.path.realpath(place.start_path)\n"
        "    subprocess.run(['mount', '--bind', sys.argv[2], f'{there}/files'], check=True)\n"
        "    print(place.take([Rule('files/**', 1 << 20, 10)]))\n"
        "    try: place.__exit__()\n"
        "    except OSError as error: print(error.strerror)\n"
        "    subprocess.run(['umount', f'{there}/files'], check=True)\n"
        "    os._exit(0)\n"
    )
    words = [sys.executable, "-u", "-c", script, str(results), str(victim.parent)]
    done = subprocess.run(["unshare", "-m", *words], capture_output=True, text=True, check=False)
    assert "files (Invalid cross-device link)" in done.stdout, done.stderr
    assert "Device or resource busy" in done.stdout
    assert victim.read_text() == PRECIOUS


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_a_file_of_another_user_is_not_taken(base: Path) -> None:
    """A guest of root's that is not confined could make one, and its owner change it later."""
    results, victim = prepared(base, 0)

    def gives() -> None:
        Path("flows/tcp1.client.json").touch()
        os.chown("flows/tcp1.client.json", NOBODY, NOBODY)

    assert "flows/tcp1.client.json (of user 65534)" in str(taken_after(gives, results))
    check_harmless(results, victim)


@pytest.mark.parametrize("user", USERS)
def test_a_tree_is_removed_however_deep_and_closed(base: Path, user: int) -> None:
    """As `testbed clean` does it."""
    results, victim = prepared(base, user)

    def work() -> None:
        os.chdir(results)
        everything_closed(victim)
        results.chmod(0o700)
        deep(5_000, "e")(victim)
        parent = os.open(results, os.O_RDONLY)
        for path in list(results.iterdir()):
            trees.remove(parent, path.name)
        assert not list(results.iterdir())

    as_user(user, work)
    assert victim.read_text() == PRECIOUS
