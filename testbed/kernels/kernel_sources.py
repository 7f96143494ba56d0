"""What `testbed kernel compare` compares: kernels by name, trees, commits of trees, patches."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import UsageError, nearest
from testbed.guest import kernels
from testbed.guest.worker import cache_folder
from testbed.machine.process import run

PATCH_SUFFIXES = (".patch", ".diff")
# Folders in kernel/, and lists of its tests.
NO_PART_OF_BUILDS = {"upstream", "examples", "causes", "needs", "packages", "reach"}
STAMP = "source"  # of a kernel: a hash of what it was built from, and its flavour
STAMP_DIGITS = hashlib.sha256().digest_size * 2


@dataclass(frozen=True)
class KernelSource:
    """A kernel to compare, as the user named it."""

    words: str
    kernel: str = ""  # one that has a name, and is or can be built by it
    tree: str = ""  # the folder of a source tree, or one of Debian's versions
    commit: str = ""  # of the tree
    patch: Path | None = None  # on the tree


def kernel_source(typed: str, base: KernelSource | None = None) -> KernelSource:
    """Return what the user's words name; a patch is on what the first words named."""
    if typed in (*kernels.debian_names(), *kernels.custom_names()):
        return KernelSource(typed, kernel=typed)
    path = Path(typed)
    if path.is_dir():
        return KernelSource(typed, tree=typed)
    tree, at, commit = typed.rpartition("@")
    if at and Path(tree).is_dir():
        return KernelSource(typed, tree=tree, commit=_commit(tree, commit))
    if path.is_file() and path.suffix in PATCH_SUFFIXES:
        return _patched(typed, path, base)
    known = [*kernels.versions(), *kernels.custom_names()]
    raise UsageError(
        f"{typed}: no kernel, source tree, TREE@COMMIT or patch file",
        f"{nearest(typed, known)} (a patch's name ends in {' or '.join(PATCH_SUFFIXES)})",
    )


def _patched(typed: str, patch: Path, base: KernelSource | None) -> KernelSource:
    if base is None or base.patch:
        raise UsageError(f"{typed}: a patch on what?", "name the kernel or the tree first")
    if not base.kernel:
        return dataclasses.replace(base, words=typed, patch=patch)
    if base.kernel not in kernels.versions():
        raise UsageError(
            f"{typed}: kernel {base.kernel} has no source here", "name its source tree first"
        )
    return KernelSource(typed, tree=base.kernel, patch=patch)


def _commit(tree: str, commit: str) -> str:
    """Return the full name of a commit."""
    done = run(["git", "-C", tree, "rev-parse", "--verify", f"{commit}^{{commit}}"], check=False)
    if done.status:
        raise UsageError(f"{tree}: no commit {commit!r}", f"git -C {tree} log")
    return done.stdout.strip()


def build_source(
    source: KernelSource, name: str, like: str, progress: kernels.Progress, flavour: str = ""
) -> tuple[str, bool]:
    """Build a kernel unless it is there, and return its name and whether it was built now.

    A source without a name gets `name`. Its first build starts from the compiled files of `like`,
    or of another kernel of the same flavour.
    """
    if source.kernel:
        fresh = kernels.built_folder(source.kernel) is None
        kernels.build_missing([source.kernel], progress)
        return source.kernel, fresh
    tree = source.tree
    if source.commit:
        progress(f"checking out {source.words}")
        tree = str(_checked_out(source, name))
    stamp = _stamp(source, Path(tree)) + flavour
    built = kernels.custom_folder(name) / STAMP
    if built.exists() and built.read_text() == stamp and kernels.built_folder(name):
        return name, False
    patches = _patch_folder(source.patch, name) if source.patch else None
    like = like or _compiled(flavour)
    wanted = kernels.CustomKernel(name, tree, patches, like=like, flavour=flavour)
    folder = kernels.build_custom(wanted, progress)
    (folder / STAMP).write_text(stamp)
    return name, True


def _compiled(flavour: str) -> str:
    """Return the name of a kernel of the flavour whose compiled files are kept, or ''."""
    stamps = sorted(cache_folder().glob(f"own/[!.]*/{STAMP}"))
    names = (each.parent.name for each in stamps if each.read_text()[STAMP_DIGITS:] == flavour)
    return next((name for name in names if (cache_folder() / "trees" / name).is_dir()), "")


def _checked_out(source: KernelSource, name: str) -> Path:
    """Return a folder with the files of a commit; those that are there already keep their times."""
    folder = cache_folder() / "trees" / f"{name}.checkout"
    folder.mkdir(parents=True, exist_ok=True)
    git_folder = run(["git", "-C", source.tree, "rev-parse", "--absolute-git-dir"]).stdout.strip()
    places = ("--git-dir", git_folder, "--work-tree", str(folder))
    index = folder.with_suffix(".index")
    index.with_suffix(".index.lock").unlink(missing_ok=True)  # one that was killed left it
    environment = {**os.environ, "GIT_INDEX_FILE": str(index)}
    run(["git", *places, "read-tree", "--reset", "-u", source.commit], env=environment)
    return folder


def _patch_folder(patch: Path, name: str) -> Path:
    """Return a folder with nothing but the patch, as own.sh takes patches."""
    folder = cache_folder() / "trees" / f"{name}.patches"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / f"{patch.stem}.patch").write_bytes(patch.read_bytes())
    return folder


def _stamp(source: KernelSource, tree: Path) -> str:
    """Return a hash of all that a kernel is built from: names, sizes and times of its files."""
    digest = hashlib.sha256(repr((source.tree, source.commit)).encode())
    if source.patch:
        digest.update(source.patch.read_bytes())
    for path in sorted(kernels.SOURCE_FOLDER.rglob("*")):
        name = path.relative_to(kernels.SOURCE_FOLDER)
        if path.is_file() and path.suffix != ".md" and not NO_PART_OF_BUILDS & {*name.parts}:
            digest.update(str(name).encode() + path.read_bytes())
    if not source.commit and tree.is_dir():
        for line in sorted(_files(tree)):
            digest.update(line.encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[str]:
    """Yield a line for each file of a tree, without git's own and what a build there has left."""
    for where, folders, _ in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        with os.scandir(where) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield f"{entry.path} {status.st_size} {status.st_mtime_ns}\n"


def has_symbols(name: str) -> bool:
    """Return whether a kernel has symbols for a debugger without being built again."""
    folder = kernels.built_folder(name)
    return folder is not None and (folder / kernels.SYMBOLS).exists()


def check_unlike(a: KernelSource, b: KernelSource) -> None:
    """Raise if both are the same."""
    if dataclasses.replace(a, words="") == dataclasses.replace(b, words=""):
        raise UsageError(f"{a.words} and {b.words} are the same", "name two kernels")
