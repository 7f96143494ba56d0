"""What a bundle says of the machine, the kernels and the programs that made its results."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

from testbed.bundles.manifest import BundledKernel
from testbed.guest import kernels
from testbed.machine.file_hashes import hash_of
from testbed.machine.safe_files import head
from testbed.plan.plan import Plan
from testbed.runs.behaviour import identity_of
from testbed.runs.identity import kernel_of_ours
from testbed.runs.provenance import versions_of
from testbed.runs.sources import compiled_for, kernel_sources, parts_of
from testbed.scenario.model import Scenario

NUMBERS_LIBRARIES = ("matplotlib", "numpy", "pandas", "pyarrow")  # of the numbers and figures
MAX_PROCESSOR_TEXT = 1 << 14  # of the first processor


def this_machine() -> dict[str, str]:
    """Return what may matter of this machine."""
    system = platform.system()
    with contextlib.suppress(OSError):
        system = platform.freedesktop_os_release().get("PRETTY_NAME", system)
    lines = head(Path("/proc/cpuinfo"), MAX_PROCESSOR_TEXT).splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "processor": next(models, platform.machine()),
        "cores": str(os.cpu_count()),
        "system": system,
        "kernel of the host": platform.release(),
    }


def kernel_facts(name: str) -> BundledKernel | None:
    """Return what a kernel of the guest is made of; None if it is not built here."""
    folder = kernels.built_folder(name)
    if folder is None:
        return None
    image, config = (hash_of(folder / each) for each in ("linux", "config"))
    version = (folder / "version").read_text(encoding="utf-8").strip()
    sources = kernel_sources(name) if name in kernels.versions() else {}
    hashes = {each: hash_of(path) for each, path in sources.items()}
    return BundledKernel(version, image, config, hashes)


def code_of(scenario: Scenario, plan: Plan) -> Mapping[str, str]:
    """Return what identifies the code that sends a trial's packets: its behaviour, or its parts."""
    return identity_of(parts_of(plan, kernel_of_ours(scenario)))


def libraries() -> dict[str, str]:
    """Return the versions of the libraries that make numbers and figures."""
    return {**versions_of(NUMBERS_LIBRARIES), "python": platform.python_version()}


def programs_in_c(plans: Iterable[Plan]) -> dict[str, str]:
    """Return a hash of each of our programs and libraries in C that run in these trials."""
    built = {each.file for plan in plans for each in compiled_for(plan)}
    return {each.name: f"sha256 {hash_of(each)}" for each in sorted(built) if each.exists()}
