"""No regular expression takes more than linear time of a text that others wrote.

What makes one slow are two repetitions without a bound that can share the same long run of
characters: the text between them can belong to the one or the other, and each way is tried before
the match fails. A search is such a repetition, too: it begins at each character.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

# of Python's own, which have no types
compiler, op, parser = map(importlib.import_module, ("re._compiler", "re._constants", "re._parser"))
CHARACTERS = frozenset([*map(chr, range(1, 128)), "é"])
SEARCHES = ("search", "finditer", "findall", "sub", "subn", "split")
MATCHES = ("match", "fullmatch")
EXCEPTIONS = {  # by module, each with why that does not matter
    "kernels/kernel_tests": "a line, whose end always matches",
    "guest/worker": "what a program of the host says of its version",
    "runs/provenance": "what a program of the host says of its version",
    "trial/parts/capture": "what tcpdump says on the host",
    "captures/tshark": "what tshark says of its version",
    "host/kernel_trace": "the format that the host's kernel has of an event",
    "kernels/gdb_script": "gdb's lines on a call",
    "report/inline": "figures that were just drawn",
    "figures/static_renderer": "figures that were just drawn",
    "runner/recorded_netlink": "commands of our own",
}


@dataclass(frozen=True)
class Part:
    """A piece of an expression, one after the other."""

    of: frozenset[str]  # characters that it can begin with or repeat
    unbounded: bool = False
    optional: frozenset[int] = frozenset()  # the groups that may be left out with it
    gives_back: bool = True  # what it has matched, if the rest does not
    at: object = None


def characters(tree: Any, item: tuple[object, object]) -> frozenset[str]:
    one = compiler.compile(parser.SubPattern(tree.state, [item]), 0)
    return frozenset(each for each in CHARACTERS if one.fullmatch(each))


def parts(tree: Any) -> Iterator[Part]:
    for kind, value in tree:
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            low, high, inner = value
            inside = [*parts(inner)]
            if any(part.unbounded for part in inside) and high is op.MAXREPEAT:
                raise ValueError("a repetition in a repetition")
            group = frozenset() if low else frozenset({id(value)})
            if high is op.MAXREPEAT:
                of = frozenset[str]().union(*(part.of for part in inside))
                yield Part(of, True, group, kind is not op.POSSESSIVE_REPEAT)
            else:
                yield from (replace(each, optional=each.optional | group) for each in inside)
        elif kind is op.SUBPATTERN:
            yield from parts(value[-1])
        elif kind is op.ATOMIC_GROUP:
            yield from (replace(each, gives_back=False) for each in parts(value))
        elif kind is op.BRANCH:
            ways = [[*parts(each)] for each in value[1]]
            of = frozenset[str]().union(*(part.of for way in ways for part in way))
            empty = any(all(part.optional for part in way) for way in ways)
            group = frozenset({id(value)}) if empty else frozenset()
            yield Part(of, any(part.unbounded for way in ways for part in way), group)
        elif kind is op.AT:
            yield Part(frozenset(), at=value)
        elif kind not in (op.ASSERT, op.ASSERT_NOT):
            yield Part(characters(tree, (kind, value)))


def fault(pattern: str, searched: bool) -> str:
    """Return what makes a pattern slow, or nothing."""
    try:
        sequence = [*parts(parser.parse(pattern))]
    except ValueError as error:
        return str(error)
    begins = bool(sequence) and sequence[0].at in (op.AT_BEGINNING, op.AT_BEGINNING_STRING)
    if searched and not begins:
        sequence.insert(0, Part(CHARACTERS, unbounded=True))
    if not searched:
        sequence.append(Part(frozenset(), at=op.AT_END))
    for first, one in enumerate(sequence):
        for second in range(first + 1, len(sequence)):
            other = sequence[second]
            there, shared = one.optional | other.optional, one.of & other.of
            between = [p for p in sequence[first + 1 : second] if p.optional <= there]
            if (
                (one.unbounded and one.gives_back and other.unbounded and shared)
                and all(part.of & shared for part in between if part.at is None)
                and any(part.optional <= there for part in sequence[second + 1 :])
            ):
                return f"the parts {first} and {second} share {sorted(shared)[:3]}"
    return ""


def patterns(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield a module's patterns that are written out, and whether they are searched for."""
    named: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(
                    ast.Attribute(ast.Name("re"), "compile"), [ast.Constant(str(p)), *_]
                ),
            ):
                named[name] = p
            case ast.Call(ast.Attribute(ast.Name("re"), how), [ast.Constant(str(p)), *_]) if (
                how in (*SEARCHES, *MATCHES)
            ):
                yield p, how in SEARCHES
    used = [(ast.unparse(n.value), n.attr) for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    for name, pattern in named.items():
        hows = {attribute for value, attribute in used if value == name} & {*SEARCHES, *MATCHES}
        yield pattern, not hows or bool(hows & {*SEARCHES})


def slow(root: Path) -> Iterator[tuple[str, str, str]]:
    for room in ("testbed", "analysis"):
        for path in sorted((root / room).rglob("*.py")):
            for pattern, searched in patterns(ast.parse(path.read_text())):
                if why := fault(pattern, searched):
                    yield str(path.relative_to(root / room).with_suffix("")), pattern, why


def test_patterns_are_linear(root: Path) -> None:
    found = [*slow(root)]
    assert [each for each in found if each[0] not in EXCEPTIONS] == []
    assert {each[0] for each in found} == EXCEPTIONS.keys()


@pytest.mark.parametrize(
    ("pattern", "searched", "is_slow"),
    [
        (r"(a+)+b", False, True),
        (r"(?:a|b*)*c", False, True),
        (r"\S+:\d+: ", True, True),  # from each character of a long word
        (r"\S+:\d+: ", False, False),
        (r"^.* sport=(\d+) .*old=(\w+)", True, True),
        (r"^(?>.*? sport=)(\d+) (?>.*?old=)(\w+)", True, False),
        (r"acknowledged (\d+)", True, False),
        (r"(\d+) packets", True, True),
        (r"x=(\d+)\.(\d+)", True, False),
        (r"\d+\d*$", False, True),
        (r"\d++\S*?-", False, False),
        (r"[^#\n]*\bCLI *\(", False, False),
        (r"^[^#]*\bCLI *\(", True, False),
    ],
)
def test_slow_patterns_are_found(pattern: str, searched: bool, is_slow: bool) -> None:
    assert bool(fault(pattern, searched)) is is_slow
