"""How a guest's Python begins: `python -S begin.py MODULES PREFIX PATHS MODULE [ARGUMENT …]`.

Runs a module with all that it imports out of one file (`testbed/engines/modules.py`): found one by
one, 200 modules are 3,400 system calls, each of them a hand-over between a guest's process and its
kernel. `-S`, since what a user's site packages do at the start of every Python is no part of a
trial. MODULES may be empty; then everything is imported as usual.

The file also holds, compiled, the six hundred methods that dataclasses write as text.

What this module imports itself is found one by one.
"""

import gc
import marshal
import sys
from _frozen_importlib import ModuleSpec  # importlib.machinery's

TYPE_CHECKING = False  # as that of typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.abc import Loader
    from types import CodeType, ModuleType
else:
    Loader = object


class OneFile(Loader):
    """Finds and loads modules that are compiled: of each its package's folders, file and code."""

    def __init__(self, modules: "Mapping[str, tuple[list[str] | None, str, CodeType]]") -> None:
        self._modules = modules

    def find_spec(
        self, name: str, _path: "Sequence[str] | None" = None, _target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Where a module is, if it is one of ours."""
        if name not in self._modules:
            return None
        folders, file, _code = self._modules[name]
        spec = ModuleSpec(name, self, origin=file)
        spec.submodule_search_locations = folders
        spec.has_location = True  # so that the module has a __file__
        return spec

    def create_module(self, spec: ModuleSpec) -> "ModuleType | None":
        """As usual."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run its code."""
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> "CodeType":
        """What runpy asks for."""
        return self._modules[name][2]


class Written(dict[str, "CodeType"]):
    """Text that dataclasses run, with its code."""

    def run(self, text: str, *where: "dict[str, object]") -> None:
        """Take the place of `exec`."""
        if text not in self:
            self[text] = compile(text, "<string>", "exec")
        exec(self[text], *where)


def begin(modules: str, prefix: str, paths: str, module: str) -> None:
    """Take the place of `python -m MODULE` in the environment that lies at the prefix."""
    gc.set_threshold(100_000)  # modules are as many objects, and none of them garbage
    sys.prefix = prefix
    sys.path[:] = [*sys.path[1:], *paths.split(":")]
    known: dict[str, CodeType] = {}
    if modules:
        with open(modules, "rb", buffering=0) as file:  # noqa: PTH123  # pathlib is in the file
            found, known = marshal.loads(file.read())
        sys.meta_path.insert(0, OneFile(found))
    import dataclasses
    import runpy

    vars(dataclasses)["exec"] = Written(known).run

    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    own, sys.argv[1:] = sys.argv[1:5], sys.argv[5:]
    begin(*own)
