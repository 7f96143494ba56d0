"""What is said while a guest's kernel is built."""

from __future__ import annotations

from testbed.guest import kernels


def test_the_link_step_is_said() -> None:
    said: list[str] = []
    lines = "for n in 80 99; do echo kernel: compiling, $n %, about 0 min 2 s left >&2; done"
    kernels._run_build(["/bin/sh", "-c", f"{lines}; echo /made"], said.append)
    assert said == ["kernel: compiling, 80 %, about 0 min 2 s left", kernels.BUILD_LINKS]
