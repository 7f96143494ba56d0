"""The experiments: how many trials, which places on which axes, and that each can be run."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.kapre_saxena_joshi_hattikar import dumbbell_settings
from experiments.parvez_mahanti_williamson import newreno_models
from experiments.parvez_mahanti_williamson.models import sbs_window
from experiments.rajore_gupta_sikka_jain.video_access import KERNELS
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.runs.estimate import guest_seconds, pace
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.profiles import PROFILE_SETTINGS
from testbed.scenario.reading import read_scenario
from tests.scenarios import router

# name: axes, trials in full, trials of a first look
PAPERS = {
    "router-bottleneck": ("variant queue path rate_mbit delay_ms duration_s", 30, 5),
    "router-fairness": ("queue within_s rate_mbit duration_s", 6, 3),
    "dumbbell-load": ("variant cbr_mbit order window profile duration_s", 56, 32),
    "dumbbell-pairs": ("pair cbr_mbit second window profile duration_s", 24, 24),
    "dumbbell-queues": ("variant queue cbr_stop profile duration_s", 12, 12),
    "video-access": (
        "network variant transport setting rule profile duration_s",
        38,
        7,
    ),
}


def everything(name: str, quick: bool = False) -> list[Scenario]:
    return EXPERIMENTS[name].scenarios({}, 1, quick)


def test_the_catalogue_has_each_experiment_by_its_name() -> None:
    assert {name: each.name for name, each in EXPERIMENTS.items()} == {n: n for n in EXPERIMENTS}


@pytest.mark.parametrize("name", PAPERS)
def test_the_axes_and_how_many_trials(name: str) -> None:
    axes, full, quick = PAPERS[name]
    assert list(EXPERIMENTS[name].axes) == axes.split()
    assert (len(everything(name)), len(everything(name, quick=True))) == (full, quick)


@pytest.mark.parametrize("quick", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_combination_can_be_planned(name: str, quick: bool) -> None:
    scenarios = everything(name, quick)
    for scenario in scenarios:
        plan = make_plan(scenario)  # raises if it has faults
        assert not [each for each in plan.warnings if "no delay" in each]
        assert read_scenario(scenario.to_json()) == scenario
        assert list(scenario.axes) == list(EXPERIMENTS[name].axes)
    assert not [name for name, n in Counter(s.name for s in scenarios).items() if n > 1]
    assert len({tuple(s.axes.values()) for s in scenarios}) == len(scenarios)


@pytest.mark.parametrize("name", PAPERS)
def test_the_label_tells_trials_apart(name: str) -> None:
    """What the engine knows by other means (duration) is in the hash alone."""
    labels = [s.label for s in everything(name)]
    assert len(set(labels)) == len(labels)


def test_another_seed_starts_flows_at_other_times() -> None:
    for name in PAPERS:
        one, other = EXPERIMENTS[name].scenarios({}, 2, True)[:: len(everything(name, True))]
        starts = [[flow.start_s for flow in make_plan(each).flows] for each in (one, other)]
        assert starts[0] != starts[1], name


def flow(scenario: Scenario, name: str) -> Flow:
    return scenario.flow(name)


def test_flows_of_the_dumbbell_go_where_the_papers_say() -> None:
    load = everything("dumbbell-load")[0]
    assert [(f.name, f.src, f.dst) for f in load.flows] == [
        ("tcp", "sender1", "receiver1"),
        ("cbr", "left", "right"),
    ]
    pairs = everything("dumbbell-pairs")[0]
    assert [(f.name, f.src, f.dst) for f in pairs.flows] == [
        ("tcp1", "sender1", "receiver1"),
        ("tcp2", "sender2", "receiver2"),
        ("cbr", "left", "right"),
    ]
    queues = everything("dumbbell-queues")[0]
    assert (flow(queues, "cbr").src, flow(queues, "cbr").dst) == ("sender2", "receiver2")
    assert (flow(queues, "cbr").start_s, queues.stop_s(flow(queues, "cbr"))) == (40, 60)
    whole = {"cbr_stop": ["for-60"], "duration_s": ["120"]}
    (longer, *_) = EXPERIMENTS["dumbbell-queues"].scenarios(whole, 1, False)
    assert (flow(longer, "cbr").start_s, longer.stop_s(flow(longer, "cbr"))) == (40, 100)
    (middle, *_) = EXPERIMENTS["dumbbell-pairs"].scenarios({"second": ["n2-n3"]}, 1, False)
    assert (flow(middle, "tcp2").src, flow(middle, "tcp2").dst) == ("left", "right")


def test_the_order_says_who_starts_first() -> None:
    for order, first, second in (("cbr-first", "cbr", "tcp"), ("tcp-first", "tcp", "cbr")):
        one = EXPERIMENTS["dumbbell-load"].scenarios({"order": [order]}, 1, False)[0]
        assert flow(one, first).start_s == 0 < flow(one, second).start_s == dumbbell_settings.GAP_S


def test_the_idle_round_trip_is_that_of_ns2() -> None:
    """1040 bytes and 40 back over three links of 10 Mbit/s, beside 60 ms of propagation."""
    sending_ms = 3 * (1040 + 40) * 8 / (dumbbell_settings.RATE_MBIT * 1e3)
    idle_ms = everything("dumbbell-load")[0].network.longest_rtt_ms + sending_ms
    assert idle_ms == pytest.approx(62.592)


def test_the_timer_of_ns2_is_200_ms_in_all() -> None:
    """Beside the round trip of an idle path, which Linux adds to the least that it is told.

    That is before the seed draws delays, within half a packet's time of them. Links take time to
    send a segment of 1054 bytes and its ACK of 54.
    """
    sending_ms = (1054 + 54) * 8 / (dumbbell_settings.RATE_MBIT * 1e3)
    for name in ("dumbbell-load", "dumbbell-pairs", "dumbbell-queues"):
        for scenario in everything(name):
            plan = make_plan(dataclasses.replace(scenario, drawn_service_times=0))
            for each in scenario.flows:
                if each.kind is FlowKind.TCP and scenario.profile is Profile.NS2:
                    way = plan.network.path(each.src, each.dst)
                    rtt_ms = sum(2 * hop.direction.delay_ms + sending_ms for hop in way)
                    assert 199.5 <= (each.rto_min_ms or 0) + rtt_ms <= 200.5, scenario.label
                elif each.kind is FlowKind.TCP:
                    assert each.rto_min_ms is None


def test_the_models_windows_are_never_the_limit_and_never_fill_the_queue() -> None:
    """Two windows fit into the path and the queue, of which a seed draws 5 % less."""
    models = EXPERIMENTS["newreno-models"]
    for scenario in models.scenarios({"m": ["1"]}, 1, False):
        plan = make_plan(dataclasses.replace(scenario, drawn_share=0))
        (queue,) = (each.hop.limit for each in plan.queues if each.sampled)
        assert queue is not None
        path_bytes = newreno_models.MODELS_MBIT * 1000 / 8 * plan.network.graph.longest_rtt_ms
        peak = sbs_window(float(scenario.axes["p_percent"]) / 100, 1)  # segments
        for each in scenario.flows:
            mss = PROFILE_SETTINGS[scenario.profile].mss
            assert each.window_bytes is not None and mss is not None
            assert 5 * peak * mss < each.window_bytes, scenario.label
            assert 2 * each.window_bytes < 0.95 * (path_bytes + queue.bytes), scenario.label


def mirrored(scenario: Scenario) -> Scenario:
    """The same with the two senders and the two receivers in each other's place."""
    swap = str.maketrans("12", "21")
    flows = [
        dataclasses.replace(f, src=f.src.translate(swap), dst=f.dst.translate(swap))
        for f in scenario.flows
    ]
    return dataclasses.replace(scenario, flows=tuple(flows))


def test_a_pair_stands_for_its_mirror_image() -> None:
    """Both ways have the same links: what differs is the order of names and addresses."""
    one = everything("dumbbell-pairs")[0]
    mirror = mirrored(one)
    assert mirror.network == one.network
    for scenario in (one, mirror):
        network = make_plan(scenario).network
        ways = [network.path(f"sender{n}", f"receiver{n}") for n in (1, 2)]
        first, second = ([(h.direction, h.limit) for h in path] for path in ways)
        assert first == second


def test_a_flow_to_the_router_does_not_cross_the_bottleneck() -> None:
    (one, *_) = EXPERIMENTS["router-bottleneck"].scenarios({"path": ["router"]}, 1, False)
    roles = [role for capture in make_plan(one).captures for role in capture.roles]
    assert sorted(roles) == ["receiver:tcp", "sender:tcp"]


@pytest.mark.parametrize("name", PAPERS)
def test_a_first_look_takes_five_minutes_at_most(name: str) -> None:
    """By what the estimate says of two cores."""
    seconds = sum(guest_seconds(make_plan(each), each) for each in everything(name, quick=True))
    assert seconds / pace() / 2 < 5 * 60


def test_all_have_four_variants_or_more_at_once() -> None:
    one = everything("router-fairness")[0]
    assert [f.name for f in one.flows] == ["linux-reno", "cubic", "vegas", "bbr"]
    assert [f.name for f in one.flows] == [f.variant for f in one.flows]
    assert len({f.start_s for f in one.flows}) == 1
    assert all(f.kind is FlowKind.TCP and f.dst == "receiver" for f in one.flows)


def test_the_laptops_variant_leaves_the_server_at_its_default() -> None:
    """As in the paper; and each variant is somebody's."""
    for one in everything("video-access"):
        video, at = one.flow("video"), one.axes
        assert video.video and (video.src, video.dst) == ("server", "station")
        name = KERNELS[at["variant"]]
        if at["setting"] == "receiver":
            assert video.video.viewer_variant == name
            assert (video.variant, video.video.control) in (("cubic", None), (None, "reno"))
        else:
            assert video.video.viewer_variant is None
            assert (video.variant, video.video.control) in ((name, None), (None, at["variant"]))


def two_parts() -> Experiment:
    return Experiment(
        name="test",
        paper="",
        about="",
        axes={"letter": ("a", "b"), "number": (1.0, 2.0), "word": ("long",)},
        parts=({}, {"letter": ("a", "c"), "number": (2.0, 3.0)}),
        build=lambda seed, letter, number, word: router(seed=seed),
        quick={"number": (2.0,), "word": ("short",)},
    )


def points(settings: dict[str, list[str]], quick: bool = False) -> list[str]:
    return [" ".join(s.axes.values()) for s in two_parts().scenarios(settings, 1, quick)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # what two parts have in common is there once
        ({}, "a1 a2 b1 b2 a3 c2 c3"),
        # narrows every part to what it has
        ({"letter": ["b", "c"]}, "b1 b2 c2 c3"),
        ({"letter": ["b", "c"], "number": ["3"]}, "c3"),
        # what no part has is for all of them
        ({"number": ["7"]}, "a7 b7 c7"),
        ({"number": ["3", "7"]}, "a7 b7 a3 c3 c7"),
        ({"letter": ["d"]}, "d1 d2 d3"),
        # known, but not together: wanted none the less
        ({"letter": ["b"], "number": ["3"]}, "b3"),
    ],
)
def test_settings_narrow_the_parts(settings: dict[str, list[str]], expected: str) -> None:
    wanted = {f"{each[0]} {each[1]} long" for each in expected.split()}
    found = points(settings)
    assert len(found) == len(wanted) and set(found) == wanted


def test_a_first_look_narrows_the_parts_and_a_setting_goes_before_it() -> None:
    assert set(points({}, quick=True)) == {"a 2 short", "b 2 short", "c 2 short"}
    assert set(points({"number": ["1"]}, quick=True)) == {"a 1 short", "b 1 short"}


def test_a_setting_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="no such axis"):
        points({"digit": ["1"]})
    with pytest.raises(UsageError, match="not a number"):
        points({"number": ["x"]})


def test_seeds_come_repeat_by_repeat() -> None:
    scenarios = two_parts().scenarios({}, 2, False)
    assert [s.seed for s in scenarios] == [1] * 7 + [2] * 7
