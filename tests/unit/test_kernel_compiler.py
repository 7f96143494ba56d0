"""The compiler of the guest's kernel, which reads the headers of most files once for all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from testbed.guest.kernels import SOURCE_FOLDER
from tests.lab import PATIENCE_S

KERNEL = ("-D__KERNEL__", '-DKBUILD_MODNAME="one"', "-O2", "-c", "-o", "one.o", "one.c")
BODY = "int of_header(void);\nint twice(int n) { return ONCE + n; }\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a header for all files, and a file."""
    (tmp_path / "all.h").write_text("#define ONCE 1\n")
    (tmp_path / "all.h.gch").mkdir()
    (tmp_path / "one.c").write_text(BODY)
    return tmp_path


def compiled(place: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    (place / "one.o").unlink(missing_ok=True)
    argv = [str(SOURCE_FOLDER / "cc"), *(words or KERNEL)]
    told = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HEADERS": str(place), **env}
    return subprocess.run(
        argv, cwd=place, env=told, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def test_the_headers_are_read_once(place: Path) -> None:
    """What is compiled before is what counts: the text may go."""
    # without the headers the file does not compile, but they are there for those that follow
    assert compiled(place, HEADERS_LIKE="plain").returncode == 1
    (place / "all.h").write_text("#error read again\n")
    os.utime(place / "all.h", (0, 0))
    assert compiled(place).returncode == 0 and (place / "one.o").exists()


def test_what_tells_files_apart_is_there(place: Path) -> None:
    """Each file has its own names, which come after the headers that all share."""
    compiled(place, HEADERS_LIKE="plain")
    (place / "one.c").write_text("char name[] = KBUILD_MODNAME;\n")
    assert compiled(place).returncode == 0
    assert b"one\0" in (place / "one.o").read_bytes()


def test_a_file_that_does_not_go_with_them_is_compiled_without(place: Path) -> None:
    compiled(place, HEADERS_LIKE="plain")
    (place / "one.c").write_text("enum { ONCE };\n")
    assert compiled(place).returncode == 0


def test_errors_are_the_compilers_own(place: Path) -> None:
    compiled(place, HEADERS_LIKE="plain")
    (place / "one.c").write_text("int one = nothing;\n")
    done = compiled(place)
    assert done.returncode == 1 and "'nothing' undeclared" in done.stderr


def test_what_is_no_file_of_the_kernel_is_left_alone(place: Path) -> None:
    assert compiled(place, *KERNEL[1:]).returncode == 1  # ONCE is nowhere
    (place / "one.c").write_text("int one;\n")
    assert compiled(place, *KERNEL[1:]).returncode == 0
    assert not (place / "one.o.names").exists()
