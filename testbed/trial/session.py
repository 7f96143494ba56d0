"""One trial: `python -m testbed.trial SCENARIO OUT`, on the kernel at hand.

Builds the network, runs the flows, and writes the results to OUT. The engines decide where it runs,
and the parts what belongs to a trial: this module knows neither.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError, hint_for
from testbed.machine.process import CommandLog, interruptible
from testbed.machine.timer import SETUP_CLOCK, reseed_random, sleep_to_multiple, wake_exactly
from testbed.plan.plan import make_plan
from testbed.scenario.model import Scenario
from testbed.scenario.reading import read_trusted
from testbed.store import COMMANDS, NETWORK_UP, RECORD, Record, Status
from testbed.trial.build import apply, cabled
from testbed.trial.parts import all_parts
from testbed.trial.parts.part import RunningTrial
from testbed.trial.parts.scheduler import ActionQueue
from testbed.trial.verify import verify

LEAD_S = 0.1
CHECK_S = 1.0  # interval of the checks whether all flows have ended
# The guest lets a process pay for more than 1024 system calls without a sleep
# (kernel/patches/0003): the look-out for the servers of more flows would move the clock between
# the timeline's two readings of it.
MANY_FLOWS = 80


@dataclass(frozen=True)
class ClockGrid:
    """The multiples of the wall clock at which things begin."""

    epoch_s: float = 0.1  # second 0
    step_s: float = 0.0  # every step of the set-up; 0: at once
    start_s: float = 0.0  # every process of the set-up; 0: at once


def run_trial(scenario: Scenario, folder: Path, grid: ClockGrid) -> Record:
    """Run a scenario, write its files to the folder, and return its record."""
    plan = make_plan(scenario)  # the sweep's plan is in another process
    wake_exactly()
    SETUP_CLOCK.start_s, SETUP_CLOCK.step_s = grid.start_s, grid.step_s
    SETUP_CLOCK.begin_step()
    with contextlib.ExitStack() as stack:
        log = CommandLog(folder / COMMANDS)
        stack.callback(log.close)
        places = stack.enter_context(cabled(plan, log))
        trial = RunningTrial(scenario, plan, places, folder)
        for kind in all_parts.parts_of(plan):
            trial.parts.append(kind(trial))
            stack.callback(trial.parts[-1].close)
        _configure(trial)
        (folder / NETWORK_UP).touch()
        return _run(trial, grid)


def _configure(trial: RunningTrial) -> None:
    for part in trial.parts:
        part.place()
    apply(trial.plan, trial.places)
    for part in trial.parts:
        part.join()
    verify(trial.plan, trial.places)


def _run(trial: RunningTrial, grid: ClockGrid) -> Record:
    """Run all parts in a network that is already up."""
    SETUP_CLOCK.begin_step()
    for part in trial.parts:
        part.open()
    for part in trial.parts:
        part.wait_until_ready()
    SETUP_CLOCK.start_s = SETUP_CLOCK.step_s = 0.0
    reseed_random()
    if len(trial.plan.flows) > MANY_FLOWS:
        sleep_to_multiple(grid.epoch_s)
    timeline = ActionQueue(LEAD_S, grid.epoch_s)
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


def _schedule(trial: RunningTrial, timeline: ActionQueue) -> None:
    for part in trial.parts:
        part.schedule(timeline)
    _schedule_end(trial, timeline, trial.plan.end_s)
    if all(part.may_end for part in trial.parts):
        _watch_for_the_end(trial, timeline)


def _schedule_end(trial: RunningTrial, timeline: ActionQueue, end_s: float) -> None:
    for part in trial.parts:
        part.schedule_end(timeline, end_s)


def _watch_for_the_end(trial: RunningTrial, timeline: ActionQueue) -> None:
    """End the trial early once nothing is left to do, with time for the queues to drain."""
    last_s = max(flow.stop_s for flow in trial.plan.flows)
    ended = False

    def check(time_s: float) -> None:
        nonlocal ended
        if ended or not all(part.done for part in trial.parts):
            return
        ended = True
        for part in trial.parts:
            part.finish(time_s)
        end_s = time_s + trial.plan.end_s - last_s
        _schedule_end(trial, timeline, end_s)
        timeline.end(end_s)

    timeline.every(CHECK_S, last_s, check)


def main(argv: list[str], grid: ClockGrid = ClockGrid()) -> int:
    """Run the trial and write its record; the exit status is 0 if it succeeded."""
    source, folder = Path(argv[0]), Path(argv[1])
    try:
        with interruptible():
            scenario = read_trusted(source.read_text())
            record = run_trial(scenario, folder, grid)
    except TestbedError as error:
        record = Record(Status.FAILED, error.message, error.hint)
    except OSError as error:
        record = Record(Status.FAILED, str(error), hint_for(error))
    except KeyboardInterrupt:
        return 130
    (folder / RECORD).write_text(record.to_json())
    return 0 if record.status is Status.OK else 1
