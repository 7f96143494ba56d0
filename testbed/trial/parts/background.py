"""Background sessions, from second 0 until the flows end, each with its own round-trip time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.plan.plan import Plan
from testbed.store import WIRES, Record
from testbed.traffic.background.sessions import INTERVAL_S, Sessions
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.scheduler import Timeline
from testbed.trial.parts.session_delays import attach_delays


class BackgroundTraffic(Part):
    """All background sessions of a trial, and the counts of their packets."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._opened: Sessions | None = None

    @property
    def _sessions(self) -> Sessions:
        assert self._opened is not None
        return self._opened

    @classmethod
    def wanted(cls, plan: Plan) -> bool:
        """True if the scenario has background traffic."""
        return plan.background is not None

    def open(self) -> None:
        """Attach the delays and start the server."""
        plan, places = self._trial.plan.background, self._trial.places
        assert plan is not None
        attach_delays(plan, places[WIRES].pid)
        server, client = (places[node] for node in (plan.flow.src, plan.flow.dst))
        self._opened = Sessions(plan, server, client, self._trial.folder)

    def wait_until_ready(self) -> None:
        """Return once the server listens."""
        self._sessions.wait_until_ready()

    def schedule(self, timeline: Timeline) -> None:
        """Schedule the start, the counts and the stop."""
        stop_s = self._sessions.plan.stop_s
        timeline.at(0, self._begin)
        timeline.every(INTERVAL_S, stop_s, self._sessions.count)
        timeline.at(stop_s, self._sessions.stop)

    def schedule_end(self, timeline: Timeline, end_s: float) -> None:
        """Schedule a final count after the last packets have arrived."""
        timeline.at(end_s, self._sessions.count)

    def _begin(self, time_s: float) -> None:
        self._sessions.begin(time_s)
        for process in self._sessions.processes:
            self._trial.process_started(*process)

    def collect(self) -> None:
        """Wait for both programs and check their exit statuses."""
        self._sessions.collect()

    def write(self, folder: Path) -> None:
        """Write the counts and the report on every session."""
        self._sessions.write(folder, self._trial.scenario.topology.bottleneck.rate_mbit)

    def describe(self, record: Record) -> Record:
        """Add all sessions as one flow."""
        return replace(record, background=self._sessions.record())

    def close(self) -> None:
        """Kill both programs."""
        if self._opened:
            self._opened.kill()

    @property
    def may_end(self) -> bool:
        """Always false: background traffic runs until it is stopped."""
        return False
