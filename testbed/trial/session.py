"""One trial: `python -m testbed.trial SCENARIO OUT`, on whatever kernel this is.

Builds the network, runs the flows, and leaves in OUT what happened. Where it runs is the engines'
business, and what belongs to a trial is the parts': this module knows neither.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from testbed.errors import TestbedError
from testbed.machine.process import CommandLog
from testbed.machine.timer import wake_exactly
from testbed.plan.plan import make_plan
from testbed.scenario.model import Scenario
from testbed.store import COMMANDS, NETWORK_UP, RECORD, Record, Status
from testbed.trial.build import apply, cabled
from testbed.trial.parts import all_parts
from testbed.trial.parts.part import RunningTrial
from testbed.trial.parts.scheduler import Timeline
from testbed.trial.verify import verify

LEAD_S = 0.1
EPOCH_GRID_S = 0.1  # second 0 is a round tenth of the wall clock
LOOK_S = 1.0  # how often it is checked whether all flows have ended


def run_trial(scenario: Scenario, folder: Path, epoch_grid_s: float) -> Record:
    """Run a scenario and describe how it went; files go to the folder as they come."""
    plan = make_plan(scenario)  # the sweep's is in another process, perhaps on another kernel
    wake_exactly()
    with contextlib.ExitStack() as stack:
        log = CommandLog(folder / COMMANDS)
        stack.callback(log.close)
        places = stack.enter_context(cabled(plan, log))
        trial = RunningTrial(scenario, plan, places, folder)
        for kind in all_parts.PARTS:
            if kind.wanted(plan):
                trial.parts.append(kind(trial))
                stack.callback(trial.parts[-1].close)
        _configure(trial)
        (folder / NETWORK_UP).touch()
        return _run(trial, epoch_grid_s)


def _configure(trial: RunningTrial) -> None:
    for part in trial.parts:
        part.place()
    apply(trial.plan, trial.places)
    for part in trial.parts:
        part.join()
    verify(trial.plan, trial.places)


def _run(trial: RunningTrial, epoch_grid_s: float) -> Record:
    """Run all parts in a network that is up."""
    for part in trial.parts:
        part.open()
    for part in trial.parts:
        part.wait_until_ready()
    begin_randomness_anew()
    timeline = Timeline(LEAD_S, epoch_grid_s)
    _schedule(trial, timeline)
    timeline.run()
    for part in trial.parts:
        part.stop()
    for part in trial.parts:
        part.collect()
    for part in trial.parts:
        part.write(trial.folder)
    return _record(trial, timeline.epoch_s)


def _record(trial: RunningTrial, epoch_s: float) -> Record:
    record = Record(
        status=Status.OK,
        seed=trial.scenario.seed,
        epoch_s=epoch_s,
        kernel=" ".join((os.uname().sysname, os.uname().release, os.uname().version)),
        warnings=trial.plan.warnings,
    )
    for part in trial.parts:
        record = part.describe(record)
    return record


def _schedule(trial: RunningTrial, timeline: Timeline) -> None:
    for part in trial.parts:
        part.schedule(timeline)
    _schedule_end(trial, timeline, trial.plan.end_s)
    if all(part.may_end for part in trial.parts):
        _watch_for_the_end(trial, timeline)


def _schedule_end(trial: RunningTrial, timeline: Timeline, end_s: float) -> None:
    for part in trial.parts:
        part.schedule_end(timeline, end_s)


def _watch_for_the_end(trial: RunningTrial, timeline: Timeline) -> None:
    """End the trial before its time once nothing is left to do; queues still drain."""
    last_s = max(flow.stop_s for flow in trial.plan.flows)
    ended = False

    def look(time_s: float) -> None:
        nonlocal ended
        if ended or not all(part.done for part in trial.parts):
            return
        ended = True
        for part in trial.parts:
            part.finish(time_s)
        end_s = time_s + trial.plan.end_s - last_s
        _schedule_end(trial, timeline, end_s)
        timeline.end(end_s)

    timeline.every(LOOK_S, last_s, look)


RNDRESEEDCRNG = 0x5207  # linux/random.h


def begin_randomness_anew() -> None:
    """Let the kernel's generator take a new key.

    In the guest that one follows from the seed alone: whether captures and samples were
    set up before makes no difference to BBR's dice or RED's. On the host it changes nothing.
    """
    with Path("/dev/urandom").open() as generator, contextlib.suppress(OSError):
        fcntl.ioctl(generator, RNDRESEEDCRNG)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM unwinds like ^C, so that everything is taken down."""

    def raise_interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, raise_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(argv: list[str], epoch_grid_s: float = EPOCH_GRID_S) -> int:
    """Run the trial and write its record; the exit status says whether it is ok."""
    source, folder = Path(argv[0]), Path(argv[1])
    try:
        with _interruptible():
            scenario = Scenario.from_json(source.read_text())
            record = run_trial(scenario, folder, epoch_grid_s)
    except TestbedError as error:
        record = Record(Status.FAILED, error.message, error.hint)
    except OSError as error:
        record = Record(Status.FAILED, str(error), "is the disk full?")
    except KeyboardInterrupt:
        return 130
    (folder / RECORD).write_text(record.to_json())
    return 0 if record.status is Status.OK else 1
