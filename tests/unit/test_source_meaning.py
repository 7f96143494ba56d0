"""What a source means: code counts, comments and prose do not."""

from __future__ import annotations

import gc
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.machine.process import run
from testbed.runs.source_meaning import READERS, c_code, meaning_of, python_code
from testbed.runs.sources import PROJECT

C_SOURCES = sorted(
    path
    for folder in ("testbed", "kernel", "analysis")
    for path in (PROJECT / folder).rglob("*.[ch]")
)


def without_spaces(code: str) -> str:
    return re.sub(r"\s+", "", code.replace("\\\n", "").replace("#pragma once", ""))


def test_c_is_read_as_gcc_reads_it() -> None:
    """All C of the project; gcc itself drops `#pragma once`, and keeps a macro's lines."""
    assert len(C_SOURCES) > 50
    files = map(str, C_SOURCES)
    for path in files:
        argv = ["gcc", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c", path]
        ours = c_code(Path(path).read_text())
        assert without_spaces(ours) == without_spaces(run(argv).stdout), path


C = '#include "a.h"\n#define X 1\nint f(void)\n{\n\treturn X + \'"\';\n}\nchar *s = "/* no */";\n'
PYTHON = 'X = 1\n\n\ndef f(a: int) -> str:\n    return f"{a:3} # no" + "b"\n'
PATCH = "--- a/x.c\n+++ b/x.c\n@@ -1,1 +1,1 @@\n-int a;\n+int b;\n"
CONFIG = "CONFIG_A=y\n# CONFIG_B is not set\n"


@pytest.mark.parametrize(
    ("suffix", "text", "same", "others"),
    [
        (
            ".c",
            C,
            [
                C.replace("{\n", "{ // it's\n\n"),
                C.replace("X 1", 'X /* of\nlines */ 1 /* " */'),
                C.replace("return X", "return /* x */ X"),
                C.replace("X + ", "X \\\n  + "),
            ],
            [
                C.replace("X +", "X -"),
                C.replace("/* no */", "/* yes */"),
                C.replace("X 1\n", "X 1 "),
                C.replace("int f", "intf"),
            ],
        ),
        (
            ".py",
            PYTHON,
            [
                PYTHON.replace("X = 1", '"""A module."""\nX = 1  # why\n"""A constant."""'),
                PYTHON.replace("str:\n", 'str:\n    """Return it."""\n'),
                PYTHON.replace("(a: int)", "(\n    a: int,\n)"),
            ],
            [
                PYTHON.replace("# no", "# yes"),
                PYTHON.replace(":3", ":4"),
                PYTHON.replace("X = 1", "X = '1'"),
                PYTHON.replace('"b"', '"c"'),
            ],
        ),
        (
            ".patch",
            PATCH,
            [f"A patch.\n\nIt does that.\n{PATCH}", f"Another head\n\n{PATCH}"],
            [PATCH.replace("b;", "c;"), PATCH.replace("x.c", "y.c")],
        ),
        (".config", CONFIG, [f"# why\n{CONFIG}"], [CONFIG.replace("_B", "_C")]),
        (".sh", "set -e\na # b\n", ["# what\nset -e\n  # why\na # b\n"], ["set -e\nb # b\n"]),
        (".pem", "key\n", [], ["kez\n", "# key\nkey\n"]),
    ],
)
def test_code_counts_and_prose_does_not(
    tmp_path: Path, suffix: str, text: str, same: list[str], others: list[str]
) -> None:
    def hash_of(content: str) -> str:
        path = tmp_path / f"source{suffix}"
        path.write_text(content)
        return meaning_of(path)

    first = hash_of(text)
    assert all(each != text and hash_of(each) == first for each in same)
    assert all(hash_of(each) != first for each in others)


def test_a_tree_is_written_the_same_by_every_python() -> None:
    """Newer versions add fields that are empty; what they have not is written as it stands."""
    assert python_code('def f():\n    "x"\n    return 1') == (
        "Module body [ FunctionDef name 'f' args arguments body [ Return value Constant value 1 ] ]"
    )
    assert set(READERS) >= {".c", ".h", ".py", ".patch"}


def test_two_threads_read_python_at_once() -> None:
    """Each collection of garbage lets another thread go on, also in the middle of a tree."""
    text = "\n".join(f"x{n} = [f({n}, (1, {{2: 3}}))]" for n in range(500))
    before = gc.get_threshold()
    gc.callbacks.append(rest := lambda *_: time.sleep(0))
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert len({*pool.map(python_code, [text] * 8)}) == 1
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(rest)
