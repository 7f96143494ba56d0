"""The recipes: of everything a trial, and what a certificate by them says."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from benchmarks import same_packets
from benchmarks.papers import TrialSetting, is_moved, scenarios_of
from benchmarks.recipes import features, is_touched, name_of, recipes, scenarios
from experiments.catalogue import EXPERIMENTS
from testbed.errors import TestbedError
from testbed.guest.kernels import versions
from testbed.plan.plan import make_plan
from testbed.runs import behaviour, sources
from testbed.runs.behaviour import Behaviour, Ledger
from testbed.scenario.model import Profile, Scenario
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import VARIANTS

# What patches touch and every guest runs: booting, clock, memory, processes, files, TCP itself.
IN_EVERY_GUEST = re.compile(
    r"(arch|kernel|include|mm|fs)/|drivers/char/random|net/ipv4/(inet_hashtables|route|tcp_input)"
    r"|net/core/dev|net/sched/sch_generic"
)
WITHOUT_A_RECIPE = {
    "net/sched/sch_fq_pie.c": "no scenario can have it: whole programs can (tests/system)",
    "net/sched/sch_hhf.c": "the same",
    "net/sched/sch_sfb.c": "the same",
    "net/sched/sch_sfq.c": "the same",
}


@pytest.fixture(scope="module")
def chosen() -> list[Scenario]:
    return scenarios()


def test_there_are_trials_of_everything(chosen: list[Scenario]) -> None:
    assert len(chosen) >= 100
    assert {each.experiment for each in chosen} - {"same-packets"} == set(EXPERIMENTS)
    assert {each.profile for each in chosen} == set(Profile)
    variants = {flow.variant for each in chosen for flow in each.flows}
    assert set(VARIANTS) - {"prague"} <= variants  # which no kernel here has
    queues = {queue.hop.queue.discipline for e in chosen for queue in make_plan(e).queues}
    assert set(DISCIPLINES) <= queues


def test_every_program_and_every_addition_to_the_kernel_has_a_trial(chosen: list[Scenario]) -> None:
    parts = {part for each in chosen for part in sources.parts_of(make_plan(each), each.kernel)}
    programs = {each.file.name for each in sources.BUILT}
    added = {sources._name(path) for path in sources._added_to_kernel(sources.PROJECT)}
    assert len(added) > 5 and programs | added | set(sources.PYTHON_PARTS) <= parts


def test_recipes_have_names_of_their_own(chosen: list[Scenario]) -> None:
    assert len({name_of(each) for each in chosen}) == len(chosen)


def moving(wanted: str) -> tuple[Behaviour, Behaviour]:
    """A behaviour, and one in which the recipes with a feature are others."""
    was = dict.fromkeys(recipes(), "0")
    moved = {
        name: "1" if any(wanted in each for each in features(scenario)) else "0"
        for name, scenario in recipes().items()
    }
    return Behaviour(was, {}), Behaviour(moved, {})


@pytest.mark.parametrize(
    ("wanted", "command", "touched"),
    [
        ("queue codel", "run dumbbell-queues --set queue=codel --set variant=sack", True),
        ("queue codel", "run dumbbell-queues --set queue=red --set variant=sack", False),
        ("queue codel", "run router-bottleneck --set queue=codel --set variant=vegas", True),
        ("queue codel", "run router-bottleneck --set queue=bfifo --set variant=vegas", False),
        ("queue codel", "run fall-floyd", False),
        ("tcp bbr", "run variants --set variant=bbr", True),
        ("tcp bbr", "run variants --set variant=veno", False),
        ("experiment lossy", "run lossy --set variant=cubic", True),
        ("experiment", "run fall-floyd", True),
    ],
)
def test_only_trials_like_the_recipes_that_moved_are_touched(
    wanted: str, command: str, touched: bool
) -> None:
    before, after = moving(wanted)
    known = {features(scenario) for scenario in scenarios_of(command)}
    assert {is_touched(each, before, after) for each in known} == {touched}
    assert not any(is_touched(each, before, before) for each in known)


def test_a_trial_with_all_features_of_a_moved_recipe_is_touched() -> None:
    """Also where other recipes of these features did not move: one of many trials may."""
    was = dict.fromkeys(recipes(), "0")
    for name, scenario in recipes().items():
        assert is_touched(features(scenario), Behaviour(was, {}), Behaviour(was | {name: "1"}, {}))


def test_an_uncertified_or_moved_trial_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(behaviour, "LEDGER", tmp_path / "ledger.json")
    before, after = moving("queue codel")
    codel = next(s for s in recipes().values() if "queue codel True" in features(s))
    other = next(s for s in recipes().values() if "queue red True" in features(s))
    first = dataclasses.replace(before, states={"testbed-runner": ("one",)})
    second = dataclasses.replace(after, states={"testbed-runner": ("two",)})
    behaviour.write(Ledger({"b1": first, "b2": second}))

    def moved(since: str, state: str, scenario: Scenario) -> bool:
        parts = frozenset({("testbed-runner", state)})
        return is_moved(since, TrialSetting(parts, features(scenario)))

    assert not moved("b1", "one", codel)
    assert moved("b1", "two", codel) and not moved("b1", "two", other)
    assert moved("b1", "three", other) and moved("b3", "two", other)


def judged(known: Ledger, hashes: dict[str, str]) -> tuple[Behaviour, list[str]]:
    due = {name: recipes()[name] for name in hashes}
    by_trial = {due[name].name: each for name, each in hashes.items()}
    return same_packets.judged(known, due, by_trial)


def test_a_certificate_adds_the_state_or_opens_a_behaviour() -> None:
    """Code that no recipe compared is not certified by one that is new."""
    one, two = "same-packets queue-pfifo 6.1", "same-packets queue-bfifo 6.1"
    parts = same_packets.state_of(recipes()[one])
    known = Ledger({"b1": Behaviour({one: "0"}, dict.fromkeys(parts, ("old",)))})
    same, moved = judged(known, {one: "0"})
    assert not moved and same.has(parts) and same.states["python"] == ("old", parts["python"])
    other, moved = judged(known, {one: "1"})
    assert (
        moved == [one]
        and other.recipes[one] == "1"
        and other.states["python"] == (parts["python"],)
    )
    with pytest.raises(TestbedError, match="nothing to compare"):
        judged(known, {two: "0"})
    more, moved = judged(known, {one: "0", two: "5"})
    assert not moved and more.recipes == {one: "0", two: "5"}


def test_every_file_that_a_patch_touches_has_a_recipe(chosen: list[Scenario]) -> None:
    plans = list(map(make_plan, chosen))
    kinds = {f"sch_{each.kind}" for plan in plans for each in plan.tc_objects}
    kinds |= {need.module for plan in plans for need in plan.needs}
    kinds |= (
        {"mac80211_hwsim", "mac80211_hwsim_main"} if any(plan.radio for plan in plans) else set()
    )
    patches = [p for v in versions() for p in sources.kernel_sources(v).values()]
    texts = [path.read_text() for path in patches if path.suffix == ".patch"]
    touched = {f for t in texts for f in re.findall(r"^\+\+\+ b/(\S+\.c)$", t, re.MULTILINE)}
    assert len(touched) > 30 and WITHOUT_A_RECIPE.keys() <= touched
    without = {f for f in touched if not IN_EVERY_GUEST.match(f) and Path(f).stem not in kinds}
    assert without == WITHOUT_A_RECIPE.keys()
