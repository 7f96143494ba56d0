"""Which C functions of trials the recipes reach: `python -m benchmarks.reached`, 10 minutes.

Compiles the programs and libraries that run in trials once more, in a scratch folder, so that each
function leaves its address when it is entered; runs the recipes with them; and writes which recipe
reached each function first into `benchmarks/reached.json`. `tests/unit/test_recipes.py` fails if a
function is neither there nor among those that no recipe can reach.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness import errors_as_exit, parser_of
from benchmarks.recipes import name_of
from testbed.machine import process
from testbed.machine.atomic import workplace
from testbed.machine.compiled import LIBRARIES
from testbed.runs.source_meaning import C_TOKEN, c_code
from testbed.runs.sources import BUILT, PROJECT
from testbed.store.names import COVERAGE_FOLDER
from testbed.store.reading import trials_in

REACHED = Path(__file__).with_name("reached.json")
NO_DECLARATOR = re.compile(r"^#.*$|__attribute__\(\(.*?\)\)", re.MULTILINE)
NAMED = re.compile(r"(\w+) ?\(")
# The guest's processes share /run/trial; elsewhere the file cannot be opened.
HOOK = f"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN __attribute__((no_instrument_function, visibility("hidden")))
#define FOLDER "/run/trial/{COVERAGE_FOLDER}"
static void *entered[4096];

HIDDEN void __cyg_profile_func_exit(void *function, void *site) {{ (void)function, (void)site; }}

HIDDEN void __cyg_profile_func_enter(void *function, void *site)
{{
	unsigned long place = (unsigned long)function / 4 % 4096;
	char line[32];
	int fd, size;

	(void)site;
	while (entered[place] && entered[place] != function)
		place = (place + 1) % 4096;
	if (entered[place])
		return;
	entered[place] = function;
	syscall(SYS_mkdir, FOLDER, 0777);
	fd = (int)syscall(SYS_open, FOLDER "/" PROGRAM, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (fd < 0)
		return;
	size = snprintf(line, sizeof(line), "%ld\\n",
			(long)((char *)function - (char *)__cyg_profile_func_enter));
	syscall(SYS_write, fd, line, size);
	syscall(SYS_close, fd);
}}
"""
COMPILER = """#!/bin/sh
case " $* " in
*" -c "*) exec gcc -g -finstrument-functions "$@" ;;
esac
while [ "$1" != -o ]; do set -- "$@" "$1"; shift; done
name=$(basename "$2" .new)
gcc -O2 -fPIC -DPROGRAM="\\"$name\\"" -c -o "$2.hook" "$(dirname "$0")/hook.c"
exec gcc -g -Wl,-Bsymbolic "$@" "$2.hook" # a function's address is not that of another library's
"""


def c_functions(text: str) -> list[str]:
    """Return the names of the functions that C defines, in their order."""
    code = C_TOKEN.sub(lambda token: token[0] if token["space"] else '""', c_code(text))
    code = NO_DECLARATOR.sub("", code)
    names, depth, begin = [], 0, 0
    for mark in re.finditer(r"[{};]", code):
        head = code[begin : mark.start()]
        if mark[0] == "{" and not depth and "=" not in head and (named := NAMED.search(head)):
            names.append(named[1])
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if not depth:
            begin = mark.end()
    return names


def functions_of_trials() -> list[str]:
    """Return all functions in C that run in trials, each behind its file's path."""
    files = {path for each in BUILT for path in each.sources() if path.suffix in {".c", ".h"}}
    return [
        f"{path.relative_to(PROJECT)} {name}"
        for path in sorted(files)
        for name in c_functions(path.read_text(encoding="utf-8"))
    ]


def functions_in(trial: Path, libraries: Path) -> Iterator[str]:
    """Yield the functions that ran in a trial, as `functions_of_trials` names them."""
    for entered in (trial / COVERAGE_FOLDER).iterdir():
        program = str(libraries / entered.name)
        (hook,) = (
            int(line.split()[0], 16)
            for line in process.run(["nm", program]).stdout.splitlines()
            if line.endswith(" __cyg_profile_func_enter")
        )
        places = (hex(hook + int(line)) for line in set(entered.read_text().split()))
        lines = process.run(["addr2line", "-fe", program, *places]).stdout.splitlines()
        for name, place in zip(lines[::2], lines[1::2], strict=True):
            if place.startswith(f"{PROJECT}/"):
                yield f"{Path(place.rpartition(':')[0]).relative_to(PROJECT)} {name}"


def compiled_in(scratch: Path) -> Path:
    """Compile what runs in trials with the hook; return a Python whose libraries these are."""
    libraries, compiler = scratch / "lib", scratch / "cc"
    libraries.mkdir()
    (scratch / "hook.c").write_text(HOOK)
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    make = ["make", "--silent", f"lib={libraries}", f"objects={scratch}/objects"]
    built = [f"{libraries}/{each.file.name}" for each in BUILT if each.file.exists()]
    process.run([*make, f"CC={compiler}", *built], cwd=PROJECT)
    process.run(make, cwd=PROJECT)
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (libraries / python).symlink_to(LIBRARIES / python)
    (scratch / "bin").mkdir()
    (scratch / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (scratch / "pyvenv.cfg").write_bytes((Path(sys.prefix) / "pyvenv.cfg").read_bytes())
    return scratch / "bin" / "python"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the recipes, and write which functions they reach; print the others."""
    parser_of(__doc__).parse_args(arguments)
    with errors_as_exit(), workplace("reached") as scratch:
        python, results = compiled_in(scratch), scratch / "results"
        process.run([str(python), "-m", "benchmarks.same_packets", str(results)], cwd=PROJECT)
        reached: dict[str, str] = {}
        for trial in trials_in(results):
            for function in functions_in(trial.path, scratch / "lib"):
                reached.setdefault(function, name_of(trial.scenario))
        known = functions_of_trials()
        kept = {name: reached[name] for name in known if name in reached}
        REACHED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        for name in known:
            if name not in reached:
                print(f"not reached: {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
