"""What is left of a source file without comments and prose: what a hash of it should tell."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

BLOCK_COMMENT = r"/\*.*?\*/"
C_TOKEN = re.compile(
    rf"""(?P<space>(?:\s|//[^\n]*|{BLOCK_COMMENT})+)"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
PATCH_BEGIN = re.compile(r"^(---|diff )", re.MULTILINE)
# `# CONFIG_X is not set` is a setting, and no comment
HASH_COMMENT = re.compile(r"^\s*#(?! CONFIG_).*\n?", re.MULTILINE)
PARSER = threading.Lock()  # until 3.11.4, Python counts the depth of all threads' trees together


def meaning_of(path: Path) -> str:
    """Return the hash of a source without comments and prose, computed again if it has changed."""
    now = path.stat()
    return _meaning_of(path, (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))


@functools.lru_cache(maxsize=512)
def _meaning_of(path: Path, _stamp: tuple[int, ...]) -> str:
    text = path.read_text(encoding="utf-8")
    return hashlib.sha256(READERS.get(path.suffix, str)(text).encode()).hexdigest()


def c_code(text: str) -> str:
    """Return C without comments, each run of spaces as one; directives keep their lines."""

    def replaced(token: re.Match[str]) -> str:
        if not token["space"]:
            return token[0]
        return "\n" if "\n" in re.sub(BLOCK_COMMENT, "", token[0], flags=re.DOTALL) else " "

    lines = C_TOKEN.sub(replaced, text.replace("\\\n", "")).split("\n")
    stripped = (line.strip() for line in lines if line.strip())
    code = "".join(f"\n{line}\n" if line[0] == "#" else f"{line} " for line in stripped)
    return re.sub(r"\n+", "\n", code).strip()


def python_code(text: str) -> str:
    """Return Python's syntax tree as text, without docstrings; the same by every Python."""
    with PARSER:
        tree = ast.parse(text)
    return " ".join(_tree(tree))


def _tree(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield "["
        for each in value:
            if not _is_docstring(each):
                yield from _tree(each)
        yield "]"
    elif isinstance(value, ast.AST):
        yield type(value).__name__
        for name in value._fields:
            child = getattr(value, name, None)
            if child is not None and child != [] and name != "ctx":  # newer Pythons have more
                yield name
                yield from _tree(child)
    else:
        yield repr(value)


def _is_docstring(node: object) -> bool:
    """Return whether a statement is a mere text, as below a definition or a field."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def patch_code(text: str) -> str:
    """Return a patch from its first file on, without the prose before."""
    begin = PATCH_BEGIN.search(text)
    return text[begin.start() :] if begin else text


def without_hash_comments(text: str) -> str:
    """Return a configuration, a list or a script without the lines that are comments."""
    return HASH_COMMENT.sub("", text)


READERS: Mapping[str, Callable[[str], str]] = {
    ".c": c_code,
    ".h": c_code,
    ".py": python_code,
    ".patch": patch_code,
    ".config": without_hash_comments,
    ".list": without_hash_comments,
    ".cnf": without_hash_comments,
    ".sh": without_hash_comments,
}
