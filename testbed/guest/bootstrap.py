"""How a guest's Python begins: `python -S bootstrap.py BUNDLE PREFIX PATHS MODULE [ARGUMENT …]`.

Runs a module with all that it imports out of one file, which `module_bundle.py` writes. `-S` keeps
a user's site packages, which are no part of a trial, from running at the start of every Python. An
empty BUNDLE imports everything as usual.

What this module imports itself is read file by file.
"""

import marshal
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # mypy takes it for that of typing, which is a large module
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.abc import Loader
    from types import CodeType, ModuleType
else:
    Loader = object


class BundleLoader(Loader):
    """Finds and loads the modules of a bundle: name → a package's folders, source file, code."""

    def __init__(self, modules: "Mapping[str, tuple[list[str] | None, str, CodeType]]") -> None:
        self._modules = modules

    def find_spec(
        self, name: str, _path: "Sequence[str] | None" = None, _target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Describe a module of the bundle; return None for any other."""
        if name not in self._modules:
            return None
        folders, file, _code = self._modules[name]
        spec = ModuleSpec(name, self, origin=file)
        spec.submodule_search_locations = folders
        spec.has_location = True  # so that the module has a __file__
        return spec

    def create_module(self, spec: ModuleSpec) -> "ModuleType | None":
        """Leave it to Python to create the module object."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run a module's code."""
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> "CodeType":
        """Return a module's code, which runpy asks for."""
        return self._modules[name][2]


def begin(bundle: str, prefix: str, paths: str, module: str) -> None:
    """Run a module as `python -m MODULE` does in the virtual environment at `prefix`."""
    sys.prefix = prefix
    sys.path[:] = [*sys.path[1:], *paths.split(":")]
    if bundle:
        with open(bundle, "rb", buffering=0) as file:  # noqa: PTH123  # pathlib is in the bundle
            sys.meta_path.insert(0, BundleLoader(marshal.loads(file.read())))
    import runpy

    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    first, sys.argv[1:] = sys.argv[1:5], sys.argv[5:]
    begin(*first)
