"""Linux's own tests of the network, compiled: all suites once for a version, or a state of a tree.

They are compiled in a guest, by Debian's compilers of today (kernel/userland.sh), so that nothing
of the host is needed, and nothing of it can be changed by a Makefile of somebody else's. All at
once: what takes long (the headers, libbpf, libynl) is shared by suites.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError, UsageError, nearest, printable
from testbed.guest import kernels
from testbed.guest.machine import MachineProgram, root_environment, run_on_machine
from testbed.guest.worker import cache_folder
from testbed.kernels.selftests import SELFTESTS, test_tree
from testbed.machine import atomic, safe_files
from testbed.machine.file_hashes import hash_of
from testbed.store.names import GUEST_ERRORS, GUEST_OUTPUT, MACHINE_FILES

FLAVOUR_FOLDER = kernels.SOURCE_FOLDER / kernels.SELFTESTS_FLAVOUR
COMPILED, TEST_LIST, BUILD_LOG = "kselftest", "kselftest-list.txt", "build.log"
INTERFACE = "include/uapi"  # of a tree: what programs see of the kernel
BUILD_MEMORY_MB = 3072
BUILD_PATIENCE_S = 3600.0  # of wall time
# In the order of Linux's own `make install`; what does not compile is left out.
COMPILE_SUITES = f"""
set -e
folder=$PWD
mkdir /tmp/tree /tmp/upper /tmp/work
mount -t overlay overlay -o lowerdir=.,upperdir=/tmp/upper,workdir=/tmp/work /tmp/tree
cd /tmp/tree
touch MAINTAINERS # a generator of libynl's looks for it, without an end
make -s ARCH=x86 headers
make -ik -C {SELFTESTS} install ARCH=x86 SCRATCH_DIR=/tmp/scratch \\
    INSTALL_PATH=/tmp/{COMPILED} TARGETS="$*" >/tmp/{BUILD_LOG} 2>&1 || :
cp -rL /tmp/{COMPILED} "$folder/{COMPILED}"
cp /tmp/{BUILD_LOG} "$folder/{COMPILED}/"
"""


@dataclass(frozen=True)
class SelftestSource:
    """What tests are built from: a tree, and what tells its state."""

    name: str
    tree: Path
    state: str


@dataclass(frozen=True)
class Selftest:
    """One of Linux's tests: a script or a program in the folder of its suite."""

    suite: str
    name: str
    built: Path  # the folder with the compiled suites

    @property
    def full_name(self) -> str:
        """The name that Linux's own list has of it."""
        return f"{self.suite}:{self.name}"


def suite_names() -> list[str]:
    """Return the suites that run here, as folders of tools/testing/selftests."""
    return list(data_lines(FLAVOUR_FOLDER / "suites"))


def data_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a table of ours, without its comments."""
    for line in safe_files.read_text(path).splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def source_of_version(version: str) -> SelftestSource:
    """Return what a version's tests are built from, unpacked if it was not."""
    tree = test_tree(version)
    return SelftestSource(version, tree, _state(tree))


def source_of_tree(tree: Path) -> SelftestSource:
    """Return what a tree's tests are built from."""
    if not (tree / SELFTESTS / "Makefile").is_file():
        raise UsageError(f"{tree} has no {SELFTESTS}", "--source names a source tree of Linux")
    return SelftestSource(tree.name, tree.resolve(), _state(tree))


def _state(tree: Path) -> str:
    """Return a hash of the suites' files and of the kernel's interface.

    A change of the kernel alone needs no other tests than those of the version that it is of.
    """
    folders = (*(f"{SELFTESTS}/{name}" for name in suite_names()), INTERFACE)
    below = (path for folder in folders for path in (tree / folder).rglob("*"))
    digest = hashlib.sha256()
    for path in sorted({*below, *(tree / SELFTESTS).glob("*")}):
        if path.is_file():
            digest.update(f"{path.relative_to(tree)} {hash_of(path)}\n".encode())
    return digest.hexdigest()[:16]


def chosen_suites(source: SelftestSource, asked: Sequence[str]) -> Sequence[str]:
    """Return the suites that were asked for, or all that this source has."""
    folder = source.tree / SELFTESTS
    known = [name for name in suite_names() if (folder / name / "Makefile").is_file()]
    for suite in asked:
        if suite not in known:
            raise UsageError(f"selftests {suite}: no such suite", nearest(suite, known))
    return list(asked) or known


def built_tests(
    source: SelftestSource, userland: Path, kernel: Path, progress: kernels.Progress
) -> Sequence[Selftest]:
    """Return a source's tests, compiled in a guest of this kernel if they were not."""
    recipe = f"{source.state} {userland.name} {COMPILE_SUITES} {suite_names()}"
    folder = cache_folder() / "selftests" / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    if not folder.is_dir():
        safe_files.make_folder(folder.parent)
        progress(f"compiling the tests of Linux {source.name} in a guest, once")
        _build(source, kernel, userland, folder)
    lines = safe_files.read_text(folder / TEST_LIST).splitlines()
    named = (line.partition(":") for line in lines)
    return [Selftest(suite, name, folder) for suite, _, name in named]


def _build(source: SelftestSource, kernel: Path, userland: Path, folder: Path) -> None:
    environment = root_environment(Path("/root"), {}, ())
    program = MachineProgram(
        ["/bin/sh", "-c", COMPILE_SUITES, "sh", *chosen_suites(source, [])],
        source.tree,
        environment,
        memory_mb=BUILD_MEMORY_MB,
        limit_s=86400,
        patience_s=BUILD_PATIENCE_S,
        root=userland,
        observed=False,
    )
    with atomic.workplace("selftests") as place:
        end = run_on_machine(program, kernel, place, lambda: False)
        built = place / MACHINE_FILES / COMPILED
        if end.status or not (built / TEST_LIST).is_file():
            texts = (safe_files.tail(place / name) for name in (GUEST_ERRORS, GUEST_OUTPUT))
            *_, why = ["", *filter(None, "\n".join(texts).splitlines())]
            raise TestbedError(
                f"the tests of Linux {source.name} were not compiled: {printable(why)}",
                "other tests: --selftests VERSION, or --source DIR",
            )
        with atomic.whole_folder(folder) as new:
            shutil.copytree(built, new, dirs_exist_ok=True)


def chosen_tests(tests: Sequence[Selftest], names: Sequence[str]) -> Sequence[Selftest]:
    """Return the tests that have one of the names, with or without its ending, or all."""
    plain = {name for test in tests for name in (test.name, Path(test.name).stem)}
    for name in names:
        if name not in plain:
            raise UsageError(f"-t {name}: no such test", nearest(name, sorted(plain)))
    return [test for test in tests if not names or {test.name, Path(test.name).stem} & {*names}]
