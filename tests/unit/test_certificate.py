"""What a certificate needs beside recipes: drawn trials, kernels, programs, reached functions."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import same_packets
from benchmarks.papers import CAPTURE_DIGITS, UNKNOWN_CAPTURES, MarkedTable, captures_of, trials_of
from benchmarks.reached import REACHED, c_functions, functions_of_trials
from benchmarks.recipes import captures_hash, features, recipes
from benchmarks.same_packets import StoredTrial
from testbed.errors import TestbedError
from testbed.machine.json_files import read_record
from testbed.runs.behaviour import Behaviour, Ledger
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.store.names import RECORD, trial_folder
from testbed.store.records import Record
from tests.trial_writer import write_trial

CODEL, PFIFO = "same-packets queue-codel 6.1", "same-packets queue-pfifo 6.1"
SECOND = "0123abcd"

# Why no recipe reaches functions of programs that run in trials, and which: a file and names.
RUNNER, SPOKEN = "testbed/runner", "testbed/runner/preload/spoken_netlink.c"
NOT_REACHED = {
    "it runs as a trial is planned, before its guest": (
        f"{SPOKEN} descriptor if_nametoindex port_of take take_all sendmsg send recvmsg",
    ),
    "it ends or describes a trial that failed": (
        f"{RUNNER}/answers.c answer_failure",
        f"{RUNNER}/netlink.c words_of",
        f"{RUNNER}/runner.c fail interrupted",
        "testbed/traffic/call/call.c die",
        "testbed/traffic/workload/main.c die",
        "testbed/trial/medium/main.c die",
    ),
    "it reads files that are long or cannot be read, after the flows": (
        f"{RUNNER}/files.c answer_whole",
    ),
    "only the user's own programs get another user": (f"{RUNNER}/programs.c has_become",),
    "only the user's own programs of UDP hand down several datagrams": (
        f"{RUNNER}/files.c udp_segmentation joins_datagrams",
    ),
    "it holds a guest that cannot be confined": (
        "testbed/machine/guard.c hold kill_children wait_for",
    ),
    "a connection of a workload was lost": ("testbed/traffic/workload/client.c lose",),
    "`testbed-medium rates`, which no trial calls": (
        "testbed/trial/medium/main.c print_rates",
        "testbed/trial/medium/phy.c air_ns",
    ),
}


@pytest.mark.parametrize(
    ("before", "after", "is_moved"),
    [
        ("aa/11", "aa/11", False),
        ("aa/11", "bb/11", False),  # other payloads, at the same times
        ("aa/11", "aa/22", True),
        ("aa", "aa/11", False),  # times and lengths were not noted then
        ("aa", "bb/11", True),
    ],
)
def test_packets_move_if_their_times_or_lengths_do(before: str, after: str, is_moved: bool) -> None:
    one, other = Behaviour({CODEL: before}, {}), Behaviour({CODEL: after}, {})
    assert one.moved(other) == {CODEL: is_moved}


def test_a_senders_own_queue_is_a_feature_of_a_trial() -> None:
    """What moves segments that wait where they are made leaves all other trials alone."""
    router = (
        "router-bottleneck variant={} queue={} path={} rate_mbit=1 delay_ms=0.225 duration_s={} 6.1"
    )
    of_path = recipes()[router.format("vegas", "bfifo", "router", 1)]
    elsewhere = recipes()[router.format("cubic", "codel", "receiver", 4)]
    feature = "tcp at its own queue"
    assert feature in features(of_path)
    assert feature not in features(elsewhere)


def test_every_c_function_has_a_recipe_that_reaches_it() -> None:
    """The list is what `python -m benchmarks.reached` has seen."""
    reached = json.loads(REACHED.read_text(encoding="utf-8"))
    rows = [row.split() for each in NOT_REACHED.values() for row in each]
    without = {f"{path} {name}" for path, *names in rows for name in names}
    functions = functions_of_trials()
    assert len(functions) > 250 and set(functions) == set(reached) | without
    assert not reached.keys() & without
    assert set(reached.values()) <= recipes().keys()


def test_functions_of_c_are_found() -> None:
    text = """
        #define CALL(x) { f(x); }
        static int one(void) { if (x) { call("}"); } return '{'; }
        struct point { int x; }; /* int none(void) { } */
        static const struct rate rates[] = { RATE(1), RATE(2) };
        int declared(int x);
        __attribute__((noreturn)) static void two(int (*call)(void), char *text)
        { exit(1); }
        static char **three(struct point points[3])
        {
            return 0;
        }
    """
    assert c_functions(text) == ["one", "two", "three"]


def trials(count: int, name: str = PFIFO, **more: str) -> list[StoredTrial]:
    scenario = recipes()[name]
    values = {"table": "a table", "behaviour": "b1", "captures": "", **more}
    return [
        StoredTrial(scenario=dataclasses.replace(scenario, seed=seed), **values)
        for seed in range(count)
    ]


def known_of(moved: Sequence[str] = (), drawn: dict[str, str] | None = None) -> Ledger:
    first = Behaviour(dict.fromkeys((CODEL, PFIFO), "0"), {})
    second = Behaviour({**first.recipes, **dict.fromkeys(moved, "1")}, {})
    return Ledger({"b1": first, "b2": second}, drawn=drawn or {})


def only_base(name: str) -> Path | None:
    return Path() if name == BASE_KERNEL else None


def draw(
    monkeypatch: pytest.MonkeyPatch, stored: list[StoredTrial], known: Ledger, state: str = "state"
) -> list[StoredTrial]:
    monkeypatch.setattr(same_packets, "stored_trials", lambda _known: iter(stored))
    monkeypatch.setattr(same_packets, "built_folder", only_base)
    return same_packets.drawn_trials(known, state)


def test_half_of_the_drawn_trials_were_drawn_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [dataclasses.replace(each, captures=SECOND) for each in trials(30)]
    fresh = trials(60)[30:]
    count = Counter(bool(e.captures) for e in draw(monkeypatch, seen + fresh, known_of()))
    assert count == {True: 10, False: 10}
    assert len(draw(monkeypatch, fresh, known_of())) == 20
    full = known_of(drawn=dict.fromkeys(map(str, range(same_packets.ENOUGH_DRAWN)), "0"))
    count = Counter(bool(e.captures) for e in draw(monkeypatch, seen + fresh, full))
    assert count == {True: 20}


def test_the_state_of_the_code_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = trials(60)
    first = draw(monkeypatch, stored, known_of())
    assert draw(monkeypatch, stored, known_of()) == first
    assert draw(monkeypatch, stored, known_of(), "another") != first
    assert draw(monkeypatch, stored, known_of(drawn={"one": "0"})) != first


def test_only_quick_trials_of_the_newest_behaviour_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (slow,) = trials(1)
    long = dataclasses.replace(slow.scenario, duration_s=2e4, sample_interval_ms=1000)
    slow = dataclasses.replace(slow, scenario=long)
    (unbuilt,) = trials(1)
    unbuilt = dataclasses.replace(
        unbuilt, scenario=dataclasses.replace(unbuilt.scenario, kernel="7.3")
    )
    touched = trials(3, CODEL)
    still = trials(2)
    drawn = draw(monkeypatch, [slow, unbuilt, *touched, *still], known_of([CODEL]))
    assert sorted(each.name for each in drawn) == sorted(each.name for each in still)
    assert not draw(monkeypatch, trials(2, behaviour="gone"), known_of())


def test_a_drawn_trial_that_moved_needs_a_recipe_that_did() -> None:
    known = known_of()
    (drawn,) = trials(1, CODEL, captures=SECOND)
    (first,) = trials(1, CODEL)  # it was never drawn: there is nothing to compare it with
    same, other = {drawn.scenario.name: f"{SECOND}ffff"}, {drawn.scenario.name: "f" * 16}
    before = known.behaviours["b2"]
    codel = Behaviour({**before.recipes, CODEL: "1"}, {})
    pfifo = Behaviour({**before.recipes, PFIFO: "1"}, {})
    same_packets.require_like_recipes([drawn], same, known, before)
    same_packets.require_like_recipes([first], other, known, before)
    same_packets.require_like_recipes([drawn], other, known, codel)
    for after in (before, pfifo):
        with pytest.raises(TestbedError, match=r"queue-codel.* of a table"):
            same_packets.require_like_recipes([drawn], other, known, after)


def test_what_was_drawn_is_noted_until_it_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    codel, other = trials(2, CODEL)
    (still,) = trials(1)
    stored = [codel, other, still]
    monkeypatch.setattr(same_packets, "stored_trials", lambda _known: iter(stored))
    known = known_of(drawn={each.name: SECOND for each in (*stored, *trials(9)[8:])})
    hashes = {codel.scenario.name: "f" * 16}
    before = known.behaviours["b2"]
    noted = same_packets.noted(known, [codel], hashes, before)
    assert noted == {**known.drawn, codel.name: "f" * CAPTURE_DIGITS}
    moved = Behaviour({**before.recipes, CODEL: "1"}, {})
    noted = same_packets.noted(known, [codel], hashes, moved)
    assert noted == {codel.name: "f" * CAPTURE_DIGITS, still.name: SECOND}


def test_a_kernel_that_is_not_built_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Also where recipes only run: those of such a kernel are left out."""
    monkeypatch.setattr(same_packets, "built_folder", only_base)
    later = dataclasses.replace(recipes()[CODEL], kernel="7.3")
    same_packets.require_kernels([recipes()[CODEL]])
    with pytest.raises(TestbedError, match=r"kernel 7\.3 is not built") as raised:
        same_packets.require_kernels([recipes()[CODEL], later])
    assert raised.value.hint == "testbed kernel build 7.3"
    ran: list[Scenario] = []

    def run(_out: Path, chosen: Sequence[Scenario], _jobs: int | None) -> dict[str, str]:
        ran.extend(chosen)
        return {each.name: "" for each in chosen}

    monkeypatch.setattr(same_packets, "scenarios", lambda: [recipes()[CODEL], later])
    monkeypatch.setattr(same_packets, "run", run)
    assert same_packets.main([str(tmp_path)]) == 0
    assert ran == [recipes()[CODEL]]
    assert "left out: same-packets queue-codel 7.3: run testbed kernel build 7.3" in (
        capsys.readouterr().out
    )


def test_other_versions_of_programs_are_an_error_until_they_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(same_packets, "versions_of", lambda names: dict.fromkeys(names, "2"))
    known = dataclasses.replace(known_of(), programs={"iperf3": "1"})
    here = same_packets.other_programs([recipes()[CODEL]], known)
    assert here == {"iperf3": "2"}
    assert not same_packets.other_programs(
        [recipes()[CODEL]], dataclasses.replace(known, programs=here)
    )
    with pytest.raises(TestbedError, match="iperf3 1, here 2"):
        same_packets.raise_other_programs(here, known)
    assert same_packets.with_other_programs(known, []).keys() == {CODEL, PFIFO}
    with pytest.raises(TestbedError, match="the code has changed, too"):
        same_packets.with_other_programs(known, [CODEL])


def test_the_captures_of_a_tables_trials_are_stored_in_their_order(tmp_path: Path) -> None:
    command = "run fall-floyd --seeds 1"
    table = MarkedTable("a table", "run", "", (command,), tmp_path / "page.md", 0, 0)
    _, second, *others = trials_of(table)
    path = tmp_path / "results" / trial_folder(second, "guest")
    write_trial(path)
    record = Record.from_json(read_record(path / RECORD))
    assert captures_of(table, tmp_path) == (
        UNKNOWN_CAPTURES + captures_hash(record)[:CAPTURE_DIGITS] + UNKNOWN_CAPTURES * len(others)
    )
