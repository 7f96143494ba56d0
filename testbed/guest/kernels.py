"""The guest's kernels: Debian's, for which there are patches, and the user's own; building them."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError, UsageError, nearest
from testbed.guest.worker import cache_folder, installed_kernels
from testbed.machine.atomic import workplace
from testbed.machine.compiled import BUILDS, IN_WHEEL
from testbed.machine.file_hashes import hash_of
from testbed.machine.journal import JOURNAL
from testbed.machine.process import Completed, run, run_told, sudo_user
from testbed.machine.safe_files import changed_by_others
from testbed.scenario.model import BASE_KERNEL
from testbed.scenario.names import checked_name

SOURCE_FOLDER = Path(__file__).resolve().parents[2] / "kernel"
ALL_COMPILED = "compiling, 99 %"  # all files are; the scripts' words are part of a kernel's key
BUILD_LINKS = "kernel: compiled; linking, a minute or more on a busy machine"
IMAGE_SCRIPT = SOURCE_FOLDER / "image.sh"
SYMBOLS = "symbols"  # of a kernel, for a debugger
CUSTOM_SCRIPT = SOURCE_FOLDER / "own.sh"
USERLAND_SCRIPT = SOURCE_FOLDER / "userland.sh"
# Folders of a version's other images (kernel/recipe.sh): for whole programs, to look for the
# kernel's own errors, and for Linux's own tests of the network.
MACHINE_FLAVOUR, DEBUG_FLAVOUR, SELFTESTS_FLAVOUR = "machine", "debug", "selftests"
MACHINE_CONFIG = SOURCE_FOLDER / MACHINE_FLAVOUR / "guest.config"
DEBUG_CONFIG = SOURCE_FOLDER / DEBUG_FLAVOUR / "guest.config"
SCRIPT_ERROR = "kernel: error: "  # begins the last line but one of a script that failed
Progress = Callable[[str], None]  # is called with each line that a build prints


def versions() -> list[str]:
    """Return the versions of Linux that have patches, the oldest first."""
    names = [path.parent.name for path in SOURCE_FOLDER.glob("[0-9]*/patches")]
    return sorted(names, key=_numbers)


def debug_name(version: str) -> str:
    """Return the name of a version's image that looks for the kernel's own errors."""
    return f"{version}-{DEBUG_FLAVOUR}"


def debian_names() -> list[str]:
    """Return the names of Debian's kernels: the versions, and those that look for errors."""
    return [*versions(), *map(debug_name, versions())]


def custom_folder(name: str) -> Path:
    """Return the folder of one of the user's own kernels, whether it is built or not."""
    return cache_folder() / "own" / checked_name(name)


def built_folder(name: str, flavour: str = "") -> Path | None:
    """Return the folder of a kernel, or None if it is not built.

    Each of Debian's versions has four images: the small one of scenarios, by the flavour those that
    have what whole programs and Linux's own tests use, and by the name VERSION-debug one that looks
    for errors of the kernel's. The user's own kernels have one.
    """
    if name not in debian_names():
        folder = custom_folder(name)
        return folder if (folder / "base").exists() else None
    if installed := installed_kernels().get(f"{name}-{flavour}" if flavour else name):
        return installed
    done = _ask_script(*_image(name, flavour))
    folder = Path(done.stdout.strip())
    return folder if done.status == 0 and (folder / "base").exists() else None


def _ask_script(*options: str) -> Completed:
    """Run the script that knows where a kernel is."""
    with _scripts_environment() as environment:
        done = run([str(IMAGE_SCRIPT), "--path", *options], check=False, env=environment)
    if done.status and os.strerror(errno.ENOSPC) in done.stderr:
        raise TestbedError(
            f"{tempfile.gettempdir()}: the disk is full",
            "make room, or name another: TMPDIR=FOLDER",
        )
    return done


@contextlib.contextmanager
def _scripts_environment() -> Iterator[dict[str, str]]:
    """Yield an environment for the scripts: their temporary files go even if they are killed."""
    with contextlib.ExitStack() as stack:
        environment = {**os.environ, **JOURNAL.marker}  # by which `testbed clean` ends them
        with contextlib.suppress(TestbedError):  # no journal can be written, which a run needs
            environment["TMPDIR"] = str(stack.enter_context(workplace("kernel")))
        yield environment


def _image(name: str, flavour: str = "") -> list[str]:
    """Return the words by which image.sh knows an image."""
    version = name.removesuffix(f"-{DEBUG_FLAVOUR}")
    flavour = DEBUG_FLAVOUR if name != version else flavour
    return [*(("--flavour", flavour) if flavour else ()), version]


def why_unusable(name: str, folder: Path | None) -> str:
    """Return why guests cannot run on a kernel, with the remedy, or nothing."""
    if folder is None:
        why = why_not_found(name) or f"looked for in {cache_folder()}"
        return f"kernel {name} is not built ({why}): {_how_to_build(name)}"
    if not is_whole(folder):
        return f"kernel {name} is damaged: {_how_to_build(name)}"
    if os.geteuid() == 0 and (why := changed_by_others(folder / "linux", sudo_user())):
        remedy = "install the wheel as root" if IN_WHEEL else "./setup.sh as root builds another"
        return f"root does not run this guest kernel: {why}; {remedy}"
    return ""


def _how_to_build(name: str) -> str:
    if name == default_kernel():
        return BUILDS
    arguments = name if name in debian_names() else f"--source DIR --name {name}"
    return f"testbed kernel build {arguments}"


def is_whole(folder: Path) -> bool:
    """Return whether a kernel's files have the hashes that were noted when it was built."""
    noted = folder / "sha256"
    try:
        if not noted.exists():  # an older one
            return all((folder / name).stat().st_size for name in ("linux", "config"))
        lines = [line.split() for line in noted.read_text().splitlines()]
        return bool(lines) and all(hash_of(folder / name) == digest for digest, name in lines)
    except (OSError, ValueError):
        return False


def why_not_found(name: str) -> str:
    """Return what kept the script from looking for a kernel; empty if nothing did."""
    if name not in debian_names():
        return ""
    errors = _ask_script(*_image(name)).stderr.strip()
    return errors.split("\n")[0].removeprefix(SCRIPT_ERROR)


def source_archive(version: str) -> Path | None:
    """Return Debian's source of this version, if it is installed or was fetched (source.sh)."""
    name = f"linux-source-{version}.tar.xz"
    places = (Path("/usr/src"), cache_folder() / "sources" / version)
    return next((place / name for place in places if (place / name).exists()), None)


def has_source(version: str) -> bool:
    """Return whether Debian's source of this version is here."""
    return source_archive(version) is not None


def custom_names() -> list[str]:
    """Return the names of the user's own kernels that are built."""
    return sorted(path.parent.name for path in (cache_folder() / "own").glob("[!.]*/base"))


def default_kernel() -> str:
    """Return the kernel of scenarios that name none.

    That is the oldest one that a wheel has brought or whose source is here, as in image.sh: the
    one of the stored numbers wherever there is that one's.
    """
    here = (each for each in versions() if each in installed_kernels() or has_source(each))
    return next(here, BASE_KERNEL)


def not_built(name: str) -> TestbedError:
    """Return the error that says how to get a kernel that is not built."""
    if name in debian_names():
        return TestbedError(f"kernel {name} is not built", f"testbed kernel build {name}")
    close = nearest(name, [*versions(), *custom_names()])
    if same := [each for each in versions() if _numbers(each)[:1] == _numbers(name)[:1]]:
        close = f"did you mean {min(same, key=lambda each: _distance(each, name))!r}?"
    return UsageError(
        f"there is no kernel {name}",
        f"{close} (one of your own: testbed kernel build --source DIR --name {name})",
    )


def _numbers(version: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", version)]


def _distance(*two_versions: str) -> list[int]:
    """Return by how much each number of one version differs from the other's."""
    numbers = itertools.zip_longest(*map(_numbers, two_versions), fillvalue=0)
    return [abs(one - other) for one, other in numbers]


@dataclass(frozen=True)
class CustomKernel:
    """A kernel of the user's own, built from a source tree or from one of Debian's versions."""

    name: str
    source: str
    patches: Path | None = None
    config: Path | None = None
    add: Path | None = None
    like: str = ""  # the kernel whose compiled files the first build starts from
    flavour: str = ""  # what an image of Debian's versions has besides

    def arguments(self) -> list[str]:
        """Return the arguments of own.sh."""
        paths = {"--patches": self.patches, "--config": self.config, "--add": self.add}
        options = [(name, str(path)) for name, path in paths.items() if path is not None]
        options += [("--like", self.like)] if self.like else []
        options += [("--flavour", self.flavour)] if self.flavour else []
        return [self.name, self.source, *(word for option in options for word in option)]


def build_version(name: str, progress: Progress, flavour: str = "") -> Path:
    """Build an image of one of Debian's kernels, which takes minutes, unless it is built already.

    A source that is not here is fetched first.
    """
    if name not in debian_names():
        raise UsageError(
            f"no patches for Linux {name.removesuffix(f'-{DEBUG_FLAVOUR}')}",
            f"there are some for {', '.join(versions())}; any tree: --source DIR --name NAME",
        )
    return _run_build([str(IMAGE_SCRIPT), *_image(name, flavour)], progress)


def symbols_of(name: str, progress: Progress) -> Path:
    """Return the file with a kernel's symbols for a debugger; for Debian's, build it if needed."""
    folder = built_folder(name)
    if folder is None:
        raise not_built(name)
    symbols = folder / SYMBOLS
    if not symbols.exists() and name in versions():  # the others have them from the start
        _run_build([str(IMAGE_SCRIPT), "--symbols", name], progress)
    if not symbols.exists():
        raise TestbedError(
            f"kernel {name} was built without symbols", "build it again: testbed kernel build"
        )
    return symbols


def build_custom(kernel: CustomKernel, progress: Progress) -> Path:
    """Build one of the user's own kernels, or what has changed in it since the last build."""
    checked_name(kernel.name)
    if kernel.name in debian_names():
        raise UsageError(f"{kernel.name} is Debian's", "give yours another --name")
    return _run_build([str(CUSTOM_SCRIPT), *kernel.arguments()], progress)


def userland(progress: Progress) -> Path:
    """Return the folder of the programs of Linux's own tests, which are fetched once."""
    return _run_build([str(USERLAND_SCRIPT)], progress)


def require_known(names: Iterable[str]) -> None:
    """Raise unless each is one of Debian's kernels, or one of the user's own that is built."""
    for name in names:
        if name not in debian_names() and built_folder(name) is None:
            raise not_built(name)


def build_missing(names: Iterable[str], progress: Progress) -> None:
    """Build those of Debian's kernels that are not built; raise for one of the user's own."""
    unique = list(dict.fromkeys(names))
    require_known(unique)
    for name in unique:
        if built_folder(name) is None:
            build_version(name, progress)


def _run_build(argv: Sequence[str], progress: Progress) -> Path:
    """Run one of the scripts, whose last two lines are an error's message and hint."""
    failed = False

    def tell(line: str) -> None:
        nonlocal failed
        failed = failed or line.startswith(SCRIPT_ERROR)
        if not failed:  # the error raised has the rest
            progress(BUILD_LINKS if ALL_COMPILED in line else line)

    with _scripts_environment() as environment:
        done = run_told(argv, tell, environment)
    if done.status != 0:
        *_, message, hint = ["", "", *filter(None, done.stderr.splitlines())]
        reason = message.removeprefix(SCRIPT_ERROR) or hint or f"{argv[0]} ended with {done.status}"
        raise TestbedError(reason, hint.strip())
    return Path(done.stdout.strip().splitlines()[-1])


def remove(name: str) -> list[Path]:
    """Delete one of the user's own kernels and its build folder; return the folders."""
    if name in debian_names():
        raise UsageError(f"{name} is Debian's", "only kernels of your own are removed by name")
    build_folder = cache_folder() / "trees" / name
    made = [build_folder.with_name(f"{name}.{suffix}") for suffix in ("checkout", "patches")]
    folders = [path for path in (custom_folder(name), build_folder, *made) if path.is_dir()]
    if not folders:
        raise not_built(name)
    for path in folders:
        shutil.rmtree(path)
    for suffix in ("lock", "log", "index"):
        build_folder.with_name(f"{name}.{suffix}").unlink(missing_ok=True)
    return folders
