"""A scenario's file as a sweep: every field by its place, nothing dropped, nothing guessed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from experiments.command import main
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.scenario.experiment import Experiment
from testbed.scenario.file_sweep import fields, sweep, values
from testbed.scenario.limits import MAX_NAME
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import FlowKind
from testbed.scenario.named_networks import LinkSettings, NamedNetwork, NetworkName
from testbed.scenario.network import Queue
from testbed.scenario.programs import Programs
from testbed.scenario.reading import ScenarioDocument
from tests.scenarios import dumbbell, router

CODEL = Queue("codel", limit_packets=100)
SCENARIO = dataclasses.replace(
    router(queue=CODEL, delay_ms=5), axes={"variant": "linux-reno", "x": "1"}
)
NAMED = NamedNetwork(
    NetworkName.ROUTER_BOTTLENECK, LinkSettings(1, queue=CODEL), access=LinkSettings(delay_ms=5)
)
FILE = ScenarioDocument(SCENARIO, NAMED)


def test_without_settings_it_is_the_file() -> None:
    assert NAMED.graph() == SCENARIO.network
    assert sweep(FILE, {}, 1) == [SCENARIO]


def test_repeats_count_on_from_the_files_seed() -> None:
    seven = dataclasses.replace(SCENARIO, seed=7)
    made = sweep(ScenarioDocument(seven), {}, 3)
    assert made == [dataclasses.replace(seven, seed=n) for n in (7, 8, 9)]


def test_values_of_several_fields_are_all_combined() -> None:
    made = sweep(
        FILE,
        {"topology.bottleneck.rate_mbit": ["20", "40"], "flows.tcp.variant": ["cubic", "bbr"]},
        2,
    )
    assert [
        (each.network.bottleneck.rate_mbit, each.flows[0].variant, each.seed) for each in made
    ] == [
        (rate, variant, seed)
        for seed in (1, 2)
        for rate in (20, 40)
        for variant in ("cubic", "bbr")
    ]
    assert len({each.name for each in made}) == 8
    assert made[0].axes == {"variant": "cubic", "x": "1", "rate_mbit": "20"}
    assert made[0].label == "linux-reno-rate_mbit-20-variant-cubic"
    unset = dataclasses.replace(made[0], label=SCENARIO.label, axes=SCENARIO.axes)
    again = sweep(ScenarioDocument(unset), {"flows.0.variant": ["linux-reno"]}, 1)
    assert again[0].flows == SCENARIO.flows
    settings = {"topology.bottleneck.rate_mbit": ["20", "40"], "flows.tcp.variant": ["bbr"]}
    told = values(FILE, settings, sweep(FILE, settings, 1)[1])
    assert told["topology.bottleneck.rate_mbit"] == "40" and told["flows.0.variant"] == "bbr"


@pytest.mark.parametrize(
    ("place", "text", "value"),
    [
        ("topology.hosts", "2", 2),
        ("topology.bottleneck.queue.ecn", "true", True),
        ("topology.bottleneck.queue.options.target_ms", "7.5", 7.5),
        ("topology.bottleneck.queue.discipline", "fq_codel", "fq_codel"),
        ("flows.0.duration_s", "2", 2),
        ("flows.tcp.rto_min_ms", "null", None),
        ("flows.tcp.receiver", "ack-division", "ack-division"),
        ("flows.tcp.ip", "6", 6),
        ("flows.tcp.variant", "null", None),
        ("profile", "ns2", "ns2"),
    ],
)
def test_a_value_is_what_the_field_takes(place: str, text: str, value: object) -> None:
    (made,) = sweep(FILE, {place: [text]}, 1)
    hosts = len(made.network.nodes) - 2
    if place.startswith("topology"):
        queue = made.network.bottleneck_queue
        found: Any = {
            "topology": {
                "hosts": hosts,
                "bottleneck": {"queue": json.loads(json.dumps(vars(queue)))},
            }
        }
    else:
        found = json.loads(made.to_json())
    for part in place.replace("tcp.", "0.").split("."):
        found = found[int(part) if part.isdigit() else part]
    assert found == value


def test_every_field_that_plan_lists_can_be_set_to_what_it_is() -> None:
    document = ScenarioDocument(dumbbell())
    for place, text in fields(document).items():
        (made,) = sweep(document, {place: [text]}, 1)
        assert dataclasses.replace(made, label="", axes={}) == dumbbell(), place


@pytest.mark.parametrize(
    ("settings", "said", "hint"),
    [
        ({"topology.botleneck.rate_mbit": ["1"]}, "topology has no 'botleneck'", "'bottleneck'"),
        ({"mss": ["500"]}, "the scenario has no 'mss'", "--set flows.0.mss=…"),
        ({"rtt": ["20"]}, "the scenario has no 'rtt'", "did you mean 'rtt_ms'?"),
        ({"rtt_ms": ["20ms"]}, "rtt_ms=20ms: not a number", "--set rtt_ms=20"),
        ({"loss_percent": ["100"]}, "not a percentage", "below 100"),
        ({"sysctls.kernel.pid_max": ["9"]}, "'kernel.pid_max': no sysctl of a host's", "correct"),
        (
            {"flows.*.mss": ["500"], "flows.tcp.mss": ["600"]},
            "the same field as flows.*.mss",
            "join the values",
        ),
        (
            {"bottleneck.rate_mbit": ["1"]},
            "no 'bottleneck'",
            "--set topology.bottleneck.rate_mbit=",
        ),
        ({"topolgy": ["1"]}, "the scenario has no 'topolgy'", "'topology'"),
        ({"flows.3.variant": ["bbr"]}, "flows has no '3'", "known: 0, tcp"),
        ({"flows.0": ["bbr"]}, "holds several values", "flows.0.name"),
        ({"flows.0.drops": ["1"]}, "holds several values", "name one"),
        ({"duration_s.x": ["1"]}, "duration_s is 5, without fields", "testbed plan"),
        ({"flows.0.loss.channel": ["1"]}, "flows.0.loss is null", "testbed plan"),
        ({"seed": ["1", "2"]}, "not a field to set", "--seeds"),
        ({"flows.0.mss": ["1"], "flows.tcp.mss": ["2"]}, "the same field as flows.0.mss", "join"),
        ({"topology.hosts": ["two"]}, "expected a valid integer, got 'two'", "correct"),
        ({"duration_s": ["inf"]}, "a number beyond all bounds", "correct"),
    ],
)
def test_what_it_refuses(settings: dict[str, list[str]], said: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        sweep(FILE, settings, 1)
    assert said in caught.value.message and hint in caught.value.hint
    assert caught.value.message.count("--set") <= 1


def test_all_faults_of_fields_and_of_values_are_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        sweep(FILE, {"seed": ["1"], "nowhere": ["1"], "duration_s": ["5"]}, 1)
    assert caught.value.message == (
        "--set seed: not a field to set; --set nowhere: the scenario has no 'nowhere'"
    )
    with pytest.raises(UsageError) as caught:
        sweep(FILE, {"duration_s": ["0", "x", "5"], "snaplen_bytes": ["1", "144"]}, 1)
    assert [str(fault).partition(": ")[0] for fault in caught.value.faults] == [
        *("duration_s=0", "snaplen_bytes=1", "duration_s=x")
    ]


def test_axes_have_the_shortest_names_that_tell_them_apart() -> None:
    def axes(*places: str, file: ScenarioDocument = FILE) -> set[str]:
        (made,) = sweep(file, {place: ["5"] for place in places}, 1)
        return set(made.axes) - set(file.scenario.axes)

    assert axes("topology.access.delay_ms") == {"delay_ms"}
    both = ("topology.access.delay_ms", "topology.bottleneck.delay_ms")
    assert axes(*both) == {"access.delay_ms", "bottleneck.delay_ms"}
    pair = ScenarioDocument(dumbbell())
    starts = ("flows.0.start_s", "flows.1.start_s")
    assert axes(*starts, file=pair) == set(starts)
    taken = dataclasses.replace(SCENARIO, axes={"delay_ms": "99"})  # of something else
    other = dataclasses.replace(FILE, scenario=taken)
    assert axes("topology.access.delay_ms", file=other) == {"access.delay_ms"}


def test_what_people_vary_has_a_name_in_every_network() -> None:
    settings = {
        "rtt_ms": ["90"],
        "loss_percent": ["2"],
        "buffer_packets": ["7"],
        "variant": ["bbr"],
        "initcwnd": ["3"],
        "initrwnd": ["5"],
        "window_bytes": ["64000"],
    }
    for scenario in (SCENARIO, dumbbell()):
        for document in (ScenarioDocument(scenario), FILE):
            (made,) = sweep(document, settings, 1)
            network = made.network
            assert network.longest_rtt_ms == pytest.approx(90)
            assert network.bottleneck.loss == GilbertElliott(0.02, 0.98)
            assert network.bottleneck_link.directions[1].loss is None
            assert (network.bottleneck_queue.limit_packets, network.bottleneck_queue.limit_bdp) == (
                *(7, None),
            )
            tcp = [flow for flow in made.flows if flow.kind is FlowKind.TCP]
            assert {(flow.variant, flow.initcwnd) for flow in tcp} == {("bbr", 3)}
            assert {(flow.initrwnd, flow.window_bytes) for flow in tcp} == {(5, 64000)}
            assert made.axes.items() >= {"rtt_ms": "90", "initcwnd": "3"}.items()


def test_the_variant_of_programs_alone_has_a_name() -> None:
    programs = Programs(client=("curl", "http://{server_ip}"), port=80)
    (flow, *_) = SCENARIO.flows
    alone = dataclasses.replace(
        flow, name="app", kind=FlowKind.COMMAND, variant="cubic", command=programs
    )
    scenario = dataclasses.replace(SCENARIO, flows=(alone,))
    (made,) = sweep(ScenarioDocument(scenario), {"variant": ["bbr"]}, 1)
    assert [each.variant for each in made.flows] == ["bbr"]
    both = dataclasses.replace(SCENARIO, flows=(alone, flow))
    (made,) = sweep(ScenarioDocument(both), {"variant": ["bbr"]}, 1)
    assert [each.variant for each in made.flows] == ["cubic", "bbr"]


def test_a_round_trip_keeps_the_proportions_of_its_delays() -> None:
    pairs = NamedNetwork(
        NetworkName.DUMBBELL, LinkSettings(10, 5, queue=CODEL), hosts=2, rtts_ms=(20, 80)
    )
    (made,) = sweep(ScenarioDocument(dumbbell(), pairs), {"rtt_ms": ["40"]}, 1)
    trips = [made.network.path(f"sender{n}", f"receiver{n}").rtt_ms for n in (1, 2)]
    assert trips == [10, 40]
    still = dataclasses.replace(NAMED, access=LinkSettings())
    (made,) = sweep(ScenarioDocument(SCENARIO, still), {"rtt_ms": ["40"]}, 1)
    assert made.network.longest_rtt_ms == 40 == 2 * made.network.bottleneck.delay_ms


def test_a_star_stands_for_all_that_have_the_field() -> None:
    two = dumbbell()
    cbr = dataclasses.replace(two.flows[1], kind=FlowKind.CBR, variant=None)
    mixed = ScenarioDocument(dataclasses.replace(two, flows=(two.flows[0], cbr)))
    (made,) = sweep(mixed, {"flows.*.variant": ["vegas"]}, 1)
    assert [flow.variant for flow in made.flows] == ["vegas", None]
    (made,) = sweep(mixed, {"flows.*.start_s": ["0.5"]}, 1)
    assert [flow.start_s for flow in made.flows] == [0.5, 0.5]


def test_a_sysctl_is_a_field_whose_name_has_dots() -> None:
    name = "net.ipv4.tcp_notsent_lowat"
    made = sweep(FILE, {f"sysctls.{name}": ["16384", "1"]}, 1)
    assert [each.sysctls for each in made] == [{name: "16384"}, {name: "1"}]
    settings = dict(make_plan(made[0]).sysctls)
    assert dict(settings["sender1"])[name] == dict(settings["receiver"])[name] == "16384"
    assert name not in dict(settings["router"])


def test_labels_are_names_however_long() -> None:
    long = ScenarioDocument(dataclasses.replace(SCENARIO, label="x" * MAX_NAME))
    made = sweep(long, {"flows.0.loss": ["null"], "duration_s": ["5", "6"]}, 1)
    assert {len(each.label) for each in made} == {MAX_NAME}
    assert len({each.name for each in made}) == 2


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["plan", *arguments])
    said = capsys.readouterr()
    return status, said.out + said.err


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(FILE.data))
    rate = "topology.bottleneck.rate_mbit"
    status, text = planned(capsys, str(path), "--set", f"{rate}=20,40", "--seeds", "2")
    assert status == 0
    assert "4 trials" in text and "linux-reno-rate_mbit-40-seed2" in text
    assert any(line.split() == [rate, "20,", "40", "1"] for line in text.splitlines())
    twice = planned(capsys, str(path), "--set", f"{rate}=2", "--set", f"{rate}=3")
    assert twice[0] == 2 and f"--set {rate}=2,3" in twice[1]
    status, text = planned(capsys, str(path), "--quick")
    assert (status, "no shorter form" in text) == (2, True)
    status, text = planned(capsys, str(path))
    assert status == 0
    assert any(line.split() == [rate, "1"] for line in text.splitlines())


def test_an_experiments_axis_set_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    both = ("--set", "variant=bbr", "--set", "variant=cubic,bbr")
    status, text = planned(capsys, "router-bottleneck", *both)
    assert (status, "--set variant: given twice" in text) == (2, True)
    assert "--set variant=bbr,cubic" in text


def test_an_experiment_knows_the_values_of_all_its_parts() -> None:
    experiment = Experiment(
        "x", "", "", {"a": (1.0,), "b": ("y",)}, router, {}, ({}, {"a": (2.0,)})
    )
    assert experiment.values() == {"a": (1.0, 2.0), "b": ("y",)}
