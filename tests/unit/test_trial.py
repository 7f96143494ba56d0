"""What a trial reads back when its flows have ended: any difference fails it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.network import verify_parameters
from testbed.plan import Parameter, make_plan
from testbed.trial import Session
from tests.scenarios import router


def check(tmp_path: Path, variant: str, seen: str, options: frozenset[str] | None) -> None:
    """The checks on a flow whose socket showed these."""
    scenario = router(variant=variant)
    session = Session(scenario, make_plan(scenario), None, tmp_path)  # type: ignore[arg-type]
    sampler: Any = SimpleNamespace(sockets=[SimpleNamespace(flow="tcp", options=options)])
    session._check_variants({"tcp": seen}, sampler)


def test_a_socket_as_asked(tmp_path: Path) -> None:
    check(tmp_path, "cubic", "cubic", frozenset({"sack", "timestamps"}))
    check(tmp_path, "newreno", "reno", frozenset())
    check(tmp_path, "newreno", "reno", None)  # too short to be seen established


def test_another_control(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="tcp: the socket ran 'cubic', not 'tahoe'"):
        check(tmp_path, "tahoe", "cubic", frozenset())
    with pytest.raises(TestbedError, match="tcp: the socket ran 'nothing', not 'tahoe'"):
        check(tmp_path, "tahoe", "", frozenset())


@pytest.mark.parametrize(
    ("variant", "control", "agreed", "said"),
    [
        ("newreno", "reno", {"sack"}, "agreed on sack, not on nothing"),
        ("sack", "reno", set(), "agreed on nothing, not on sack"),
        ("cubic", "cubic", {"sack"}, "agreed on sack, not on sack and timestamps"),
    ],
)
def test_other_options(
    tmp_path: Path, variant: str, control: str, agreed: set[str], said: str
) -> None:
    with pytest.raises(TestbedError, match=said):
        check(tmp_path, variant, control, frozenset(agreed))


def test_a_parameter_that_is_not_what_it_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alpha").write_text("2\n")
    monkeypatch.setattr(Parameter, "file", property(lambda self: str(tmp_path / self.name)))
    plan: Any = SimpleNamespace(parameters=(Parameter("vegas", "alpha", 2),))
    verify_parameters(plan)
    plan.parameters = (Parameter("vegas", "alpha", 1),)
    with pytest.raises(TestbedError, match="vegas: alpha is 2, not 1"):
        verify_parameters(plan)
