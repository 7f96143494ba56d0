"""Files of a trial that are cut, as by a full disk or a copy that was ended: none without a word.

Each cut is named, and its trial is invalid, or all numbers and the verdict are what they were.
"""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from analysis.results.reduction import reductions_of
from testbed.errors import TestbedError
from testbed.scenario.video import PlayerKind
from testbed.store.names import RECORD, REDUCED, VERDICT_FILE
from testbed.store.reading import open_trial
from tests.doctored import SOUND
from tests.lab import run_trials
from tests.scenarios import near_video

SEED = 66
FEW, MANY = 40, 200
BLOCK_BYTES = 4096
PACKET_BLOCK = b"\x06\0\0\0"  # how one begins in pcapng
Outcome = tuple[str, str, str]  # what was said, the flows' rows, the verdict


@pytest.fixture(scope="module", params=["plain", "video"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial that was reduced."""
    out = tmp_path_factory.mktemp(request.param)
    if request.param == "plain":
        path = Path(shutil.copytree(SOUND, out / "trial"))
    else:
        path = run_trials([near_video("https", PlayerKind.MODEL)], out)[0].path
    assert read(path)[0] == ""
    return path


def read(path: Path) -> Outcome:
    """Reduce a trial, and return what came of it."""
    try:
        (reduction,) = reductions_of([open_trial(path)])
    except TestbedError as error:
        return error.message, "", ""
    verdict = reduction.verdict
    assert verdict is not None
    said = "; ".join((*reduction.warnings, *([verdict.why] if reduction.is_damaged else [])))
    return said, reduction.flows.to_csv(), verdict.verdict


def cut(content: bytes, dice: random.Random) -> tuple[str, int]:
    """Choose where a file ends: at a line's end, at a block's, anywhere, or at its beginning."""
    how = dice.choice(("line", "block", "packet", "anywhere", "nothing"))
    ends = {
        "line": [m.end() for m in re.finditer(rb"\n", content)],
        "block": range(BLOCK_BYTES, len(content), BLOCK_BYTES),
        "packet": [m.start() for m in re.finditer(re.escape(PACKET_BLOCK), content)],
        "anywhere": range(len(content)),
        "nothing": [0],
    }
    return how, dice.choice([end for end in ends[how] if end < len(content)] or [0])


def test_no_cut_is_silent(whole: Path, full: bool) -> None:
    dice = random.Random(SEED)
    before = read(whole)
    names = sorted(str(p.relative_to(whole)) for p in whole.rglob("*") if p.is_file())
    assert {RECORD, REDUCED, VERDICT_FILE} < {*names}
    derived = {name: (whole / name).read_bytes() for name in (REDUCED, VERDICT_FILE)}
    named = 0
    for _ in range(MANY if full else FEW):
        name = dice.choice([each for each in names if (whole / each).stat().st_size])
        content = (whole / name).read_bytes()
        how, end = cut(content, dice)
        if name not in derived:  # as after an update of the testbed
            for each in derived:
                (whole / each).unlink()
        (whole / name).write_bytes(content[:end])
        said, rows, verdict = read(whole)
        what = f"{name} cut at {end} of {len(content)} ({how})"
        if (rows, verdict) == before[1:]:
            assert said == "", what
        else:
            named += 1
            assert name in said and verdict in ("invalid", ""), what
        (whole / name).write_bytes(content)
        for each, stored in derived.items():
            (whole / each).write_bytes(stored)
    assert named > FEW // 2


def test_a_file_that_is_missing_is_named_as_missing(whole: Path) -> None:
    for name in open_trial(whole).record.files:
        (whole / name).rename(whole.with_name("aside"))
        (whole / REDUCED).unlink(missing_ok=True)
        said, _rows, verdict = read(whole)
        (whole.with_name("aside")).rename(whole / name)
        if verdict == "valid":
            assert name == "commands.log"
        else:
            assert name in said and "missing" in said, name
