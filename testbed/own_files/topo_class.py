"""A Mininet Topo by its name, as `mn --topo` and `mn --custom` take it: loaded and built."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from mininet.topo import Topo

from testbed.errors import UsageError, nearest, quoted
from testbed.own_files.python_file import SUFFIX, fault, imported

HINT = "FILE.py:CLASS,arg=…, MODULE:CLASS,arg=…, or one of mn's: tree,depth=2,fanout=2"
OF_MN: Mapping[str, tuple[str, str]] = {  # as in Mininet's own `mn`
    "minimal": ("mininet.topo", "MinimalTopo"),
    "linear": ("mininet.topo", "LinearTopo"),
    "reversed": ("mininet.topo", "SingleSwitchReversedTopo"),
    "single": ("mininet.topo", "SingleSwitchTopo"),
    "tree": ("mininet.topolib", "TreeTopo"),
    "torus": ("mininet.topolib", "TorusTopo"),
}
CONSTANTS = {"True": True, "False": False, "None": None}

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Settings:
    """`1,depth=2`: positional and named values."""

    positional: tuple[Value, ...]
    named: Mapping[str, Value]


@dataclass(frozen=True)
class TopoName:
    """Where a Topo class is, what it is called, and what its `build` is given."""

    text: str
    source: str  # a file or a module
    class_name: str  # empty: the only one
    settings: Settings

    @property
    def word(self) -> str:
        """What it is, in a word: for the name of an experiment."""
        if self.source in OF_MN:
            return self.source
        return Path(self.source).stem if self.is_file else self.source.rpartition(".")[2]

    @property
    def is_file(self) -> bool:
        """Whether the class is in a file, not in a module."""
        return self.source.endswith(SUFFIX)


def parse(text: str) -> TopoName:
    """A Topo as the command line names it."""
    head, *words = text.split(",")
    source, colon, class_name = head.rpartition(":")
    if not colon:
        source, class_name = head, ""
    if not source:
        raise UsageError(f"{quoted(text)} names no Topo", HINT)
    return TopoName(text, source, class_name, settings(words))


def settings(words: list[str]) -> Settings:
    """Values as Python's where they are numbers, True, False or None; else texts."""
    named = dict(word.split("=", 1) for word in words if "=" in word)
    return Settings(
        tuple(_value(word) for word in words if "=" not in word),
        {key: _value(text) for key, text in named.items()},
    )


def _value(text: str) -> Value:
    if text in CONSTANTS:
        return CONSTANTS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def build(name: TopoName, folder: Path) -> Topo:
    """The Topo; a file's path is relative to the folder."""
    if name.is_file:
        path = folder / name.source
        if not path.is_file():
            raise UsageError(f"{path}: {'not a file' if path.exists() else 'no such file'}", HINT)
        return _made(path, _found(imported(path), name, str(path)), name)
    module, class_name = OF_MN.get(name.source, (name.source, name.class_name))
    if name.source not in OF_MN and not class_name:
        raise UsageError(f"no Topo is called {quoted(name.source)}", nearest(name.source, OF_MN))
    found = _module(module)
    known = TopoName(name.text, module, class_name, name.settings)
    return _made(Path(found.__file__ or module), _found(found, known, module), known)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name}: {error}", HINT) from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name}: {type(error).__name__}: {error}", HINT) from error


def _found(module: ModuleType, name: TopoName, where: str) -> Callable[..., object]:
    """The class of that name, or what the file's `topos` calls so; without a name the only one."""
    known: dict[str, Callable[..., object]] = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, Topo)
        and value.__module__ == module.__name__
    }
    known |= {key: value for key, value in getattr(module, "topos", {}).items() if callable(value)}
    if name.class_name in known:
        return known[name.class_name]
    if not known:
        raise UsageError(f"{where}: defines no Topo", HINT)
    if not name.class_name and len({id(each) for each in known.values()}) == 1:
        return next(iter(known.values()))
    if not name.class_name:
        raise UsageError(
            f"{where}: defines {', '.join(known)}", f"name one: {where}:{next(iter(known))}"
        )
    raise UsageError(
        f"{where}: has no Topo {quoted(name.class_name)}", nearest(name.class_name, known)
    )


def _made(path: Path, make: Callable[..., object], name: TopoName) -> Topo:
    try:
        topo = make(*name.settings.positional, **name.settings.named)
    except (Exception, SystemExit) as error:
        raise UsageError(fault(path, error).message, f"it was built by `{name.text}`") from error
    if not isinstance(topo, Topo):
        raise UsageError(f"{path}: {name.class_name} makes a {type(topo).__name__}, no Topo", HINT)
    return topo
