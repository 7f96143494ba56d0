"""How a guest's Python begins: `python -S begin.py MODULES PREFIX PATHS MODULE [ARGUMENT …]`.

Runs a module with all that it imports out of one file (`testbed/engines/modules.py`): found one by
one, 200 modules are 3,400 system calls, each of them a hand-over between a guest's process and its
kernel. `-S`, since what a user's site packages do at the start of every Python is no part of a
trial. MODULES may be empty; then everything is imported as usual.

What this module imports itself is found one by one.
"""

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


def begin(modules: str, prefix: str, paths: str, module: str) -> None:
    """Take the place of `python -m MODULE` in the environment that lies at the prefix."""
    sys.prefix = prefix
    sys.path[:] = [*sys.path[1:], *paths.split(":")]
    if modules:
        with open(modules, "rb", buffering=0) as file:  # noqa: PTH123  # pathlib is in the file
            sys.meta_path.insert(0, OneFile(marshal.loads(file.read())))
    import runpy

    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    own, sys.argv[1:] = sys.argv[1:5], sys.argv[5:]
    begin(*own)
