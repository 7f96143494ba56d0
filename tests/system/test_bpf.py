"""A congestion control in BPF, loaded into this machine's kernel and run by the host engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.guest import kernels
from tests.lab import run_trials
from tests.scenarios import router

BPFTOOL = shutil.which("bpftool") or shutil.which("bpftool", path="/usr/sbin")
TYPES = Path("/sys/kernel/btf/vmlinux")
LACKS = [
    what
    for what, there in {
        "clang": shutil.which("clang"),
        "bpftool": BPFTOOL,
        "libbpf-dev": Path("/usr/include/bpf/bpf_helpers.h").exists(),
        "a kernel with CONFIG_DEBUG_INFO_BTF": TYPES.exists(),
    }.items()
    if not there
]
pytestmark = [
    pytest.mark.host,
    pytest.mark.root("loads a program into the kernel"),
    pytest.mark.skipif(bool(LACKS), reason=f"needs {', '.join(LACKS)}"),
]


def bpftool(*words: str) -> str:
    argv = [str(BPFTOOL), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def gentle(tmp_path: Path) -> Iterator[str]:
    """The example in the kernel, under a name of this process's own: the kernel keeps what a
    killed test left there, and two suites can run at once."""
    name = f"gentle{os.getpid()}"
    types = bpftool("btf", "dump", "file", str(TYPES), "format", "c")
    (tmp_path / "vmlinux.h").write_text(types)
    compiled = tmp_path / "gentle.o"
    flags = ["-O2", "-g", "-target", "bpf", f"-I{tmp_path}"]
    example = (kernels.SOURCE_FOLDER / "examples" / "tcp_gentle.bpf.c").read_text()
    source = tmp_path / "gentle.bpf.c"
    source.write_text(re.sub(r"\bgentle\b", name, example))
    subprocess.run(["clang", *flags, "-c", source, "-o", compiled], check=True)
    bpftool("struct_ops", "register", str(compiled))
    yield name
    bpftool("struct_ops", "unregister", "name", name)


def test_the_example_runs(gentle: str, tmp_path: Path) -> None:
    (trial,) = run_trials([router(variant=gentle, duration_s=3)], tmp_path / "out", "host")
    (flow,) = trial.record.flows
    assert flow.variant_seen == gentle
