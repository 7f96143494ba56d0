"""Mistakes on the command line: each ends at once, in a message and in what to type instead."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.errors import UsageError
from testbed.faults import FIELDS_HINT
from tests.trial_writer import write_trial

SCENARIO: dict[str, Any] = {
    "experiment": "x",
    "duration_s": 5,
    "network": {
        "nodes": [{"name": "r", "kind": "router"}, {"name": "a"}, {"name": "b"}],
        "links": [
            {"ends": ["a", "r"]},
            {
                "ends": ["r", "b"],
                "forward": {
                    "rate_mbit": 10,
                    "queue": {"discipline": "pfifo", "limit_packets": 50},
                },
            },
        ],
    },
    "flows": [{"name": "f", "kind": "tcp", "variant": "cubic", "src": "a", "dst": "b"}],
}
# their content, or the place of a value in the scenario and what is there instead
FILES: dict[str, str | tuple[tuple[str | int, ...], object]] = {
    "broken.json": '{"experiment": "x",}',
    "quotes.json": "{'experiment': 'x'}",
    "early.json": '{"experiment":',
    "empty.json": "",
    "list.json": "[]",
    "negative.json": (("duration_s",), -1),
    "no_flows.json": (("flows",), []),
    "ends.json": (("network", "links", 0, "ends"), ["a", "a"]),
    "text.json": (("network", "links", 1, "forward", "rate_mbit"), "10Mbit"),
    "loss.json": (("network", "links", 1, "forward", "loss"), 0.01),
    "kind.json": (("network", "nodes", 1, "kind"), "hots"),
    "node.json": (("flows", 0, "dst"), "c"),
    "field.json": (("flows", 0, "varient"), "cubic"),
    "syntax.py": "def f(:\n",
    "module.py": "import nosuch_module\n",
    "nothing.py": "x = 1\n",
    "build.py": (
        "from testbed.scenario.experiment import Experiment\n"
        "EXPERIMENT = Experiment(\n"
        "    'mine', '', '', {'packets': (1.0,)}, lambda **values: {}['packets'], {}\n"
        ")\n"
    ),
    "text.pcap": "hello",
    "lab.py": "print(1)\n",
}
RUN = "run router-bottleneck"
TOPO = "run --topo single,2 --link bw=10"
MISTAKES = f"""
rnu | did you mean 'run'?
help | testbed VERB --help
--versoin | did you mean '--version'?
--quick {RUN} | testbed VERB --quick
run | an experiment (`testbed list`), or --topo
run router-botleneck | did you mean 'router-bottleneck'?
{RUN} fall-floyd | testbed run --help
run /tmp | name an experiment (`testbed list`), a scenario's .json
run negative | did you mean 'negative.json'?
run negative.jsn | did you mean 'negative.json'?
run text.pcap | name an experiment (`testbed list`), a scenario's .json
{RUN} --quik | did you mean '--quick'?
{RUN} --zzzz | testbed run --help lists the options
{RUN} --seeds 0 | e.g. --seeds 3
{RUN} --seeds three | e.g. --seeds 3
{RUN} --seeds 1000000 | --seeds 3333
{RUN} --jobs 0 | e.g. --jobs 3
{RUN} --engine gest | did you mean 'guest'?
{RUN} --captures zip | known: drop, keep, zstd
{RUN} --until soon | e.g. --until ci=2%
{RUN} --until answered --budget soon | e.g. --budget 30min
{RUN} --budget 5min | --until answered
{RUN} --order banana | --order 7
{RUN} --format pdf | known: csv, json, latex, md, table
{RUN} --name latest | choose another name
{RUN} --name a/b | names are letters
{RUN} --name 'my run' | names are letters
{RUN} --columns goodput | name one of goodput_mbps
{RUN} --columns goodput_mpbs | did you mean 'goodput_mbps'?
{RUN} --columns flow | leave it out
{RUN} --verbose | commands.log
{RUN} --columns goodput_mbps --all | leave out --all
{RUN} --duration 5 | --set duration_s=
{RUN} --link bw=10 | --topo tree,2,2 --link bw=10
{RUN} --topo single,2 | without it: --topo tree,2,2
{RUN} --set variant | axes: variant, queue
{RUN} --set variant= | axes: variant, queue
{RUN} --set =cubic | axes: variant, queue
{RUN} --set variant=cubic --set variant=bbr | --set variant=cubic,bbr
{RUN} --set varient=cubic | did you mean 'variant'?
plan router-bottleneck --set variant=Ren0! | correct the spelling
{RUN} --set queue=fifo | correct the spelling
{RUN} --set queue=droptail | choose a known value of queue
{RUN} --set path=sendr | correct the spelling
{RUN} --set rate_mbit=10Mbit | --set rate_mbit=10
{RUN} --set delay_ms=20ms | --set delay_ms=20
{RUN} --set delay_ms=1..5 | --set delay_ms=1,5
{RUN} --set rate_mbit=-5 | from 0.001 to 100000
{RUN} --set duration_s=1e9 | above 0, up to 86400
{RUN} --set duration_s=nan | --set duration_s=60
{RUN} --set kernel=5.10 | known: 6.1
run incast --set senders=0 | by default: --set senders=5,10
run incast --set senders=5000 | by default: --set senders=5,10
run fall-floyd --set lost=9 | by default: --set lost=1,2,3,4
run intra-protocol --set flows=1e9 | by default: --set flows=2,4
run aqm --set traffic=heavyy | by default: --set traffic=mild
run lossy --set burst=0 | by default: --set burst=1,4
run nowhere.json | name an experiment
run broken.json | leave the comma out
run quotes.json | JSON has double quotes
run early.json | is the file complete?
run empty.json | a scenario, complete, as an example
run list.json | a scenario, complete, as an example
run negative.json | above 0, up to 86400
run no_flows.json | "flows": [{{"kind": "tcp"
run ends.json | "ends": ["h1", "r1"]
run text.json | rate_mbit is in Mbit/s
run loss.json | "loss": {{"to_bad": 0.005, "to_good": 1}}
run node.json | choose a known value of dst, such as a
run field.json | correct the spelling
run course.py:Offices | --topo course.py:Offices
run kind.json | choose a known value of kind, such as host
run nowhere.py | `testbed new EXPERIMENT_NAME`
run syntax.py | correct that line
run module.py | correct that line
run nothing.py | `testbed new EXPERIMENT_NAME`
run build.py | correct that line
run --topo single,2 | --link bw=10,delay=5ms
plan router-bottleneck --set variant=cubik | did you mean 'cubic'?
plan router-bottleneck --set kernel=6.13 | did you mean '6.12'?
run --topo trus --link bw=10 --flow h1,h2 | did you mean 'torus'?
run --topo torus,3,3 --link bw=10 --flow h1x1,h2x2 | testbed mininet -- mn
run --topo torus --link bw=10 --flow h1,h2 | tree,depth=2,fanout=2
{TOPO} | --flow h1,h2,variant=cubic
{TOPO} --flow h1 | --flow h1,h2,variant=cubic
{TOPO} --flow h1,h9 | choose a known value of dst, such as h1
{TOPO} --flow h1,h1 | --flow h1,OTHER
{TOPO} --flow h1,h2,varient=cubic | correct the spelling
{TOPO} --flow h1,h2,start_s=-1 | seconds from 0 to the trial's end
{TOPO} --flow h1,h2 --quick | --set duration_s=10
run --topo single,2 --link bw=ten --flow h1,h2 | like bw=10
run --topo single,2 --link rate=10 --flow h1,h2 | --link bw=10,delay=5ms
run --topo single,2 --link delay=5 --flow h1,h2 | delay='5ms'
plan nosuch | known: aggregation
plan router-bottleneck --commnds | did you mean '--commands'?
evaluate | testbed evaluate veno --quick
evaluate renoo | did you mean 'reno'?
evaluate bbr --against renoo | did you mean 'reno'?
evaluate bbr --queue nosuch | known: bfifo
evaluate bbr --budget soon | e.g. --budget 30min
evaluate bbr --adversary murder | known: harm, stall, starvation
evaluate bbr --set rate_mbit=1,2 | testbed evaluate NAME --against
report | example: testbed report
report nowhere | `testbed run` makes one
report trial --from 10 --to 5 | flow tcp ran from
report trial --flow nosuch | known: cbr, tcp
report trial --style glossy | known: page, paper
report folder --flow tcp | name one, or leave them out
compare trial | example: testbed compare
compare nowhere trial | `testbed run` makes one
compare trial trial --metric goodput | did you mean 'goodput_mbps'?
compare trial trial --tolerance goodput_mbps=five% | e.g. rtt_mean_ms=0.5
runs remve x | testbed runs remove RUN
runs remove | `testbed runs` lists them
runs --unused | testbed runs remove --unused
inspect | example: testbed inspect
inspect nowhere | such as results/variants/
inspect trial --flow nosuch | known: cbr, tcp
inspect trial --point middle | known: bottleneck-in
inspect trial --packets 0 | e.g. --packets 3
rewind trial | --packet retransmission
rewind trial --at 1 --packet 2 | leave out the other
rewind trial --packet banana | testbed inspect trial --packets 20
rewind trial --at x | e.g. --at 2.5
export nowhere | such as results/variants/
export trial --format pcap | known: perfetto, qlog, xplot
reduce | example: testbed reduce
reduce nowhere.pcap | name a pcap or pcapng file
reduce folder | name captures, or a folder
reduce text.pcap --format parquet | add --out FILE
reduce text.pcap --bin 5parsecs | e.g. 1s, 100ms
reduce text.pcap --packets --lengths | leave out --lengths
new router-bottleneck | testbed new my_router-bottleneck
new a/b | testbed new buffer_size
kernel frob | known: build, check
kernel build | testbed kernel build 6.12
kernel build 6.1 --machine --debug | leave out --debug
kernel build 6.1-debug --machine | build one after the other
kernel remove nosuch | known: 6.1
kernel compare 6.1 | testbed kernel compare ~/linux
mininet | testbed mininet lab.py
mininet nowhere.py | testbed mininet lab.py
exec | testbed exec -- make test
exec --capture all -- true | testbed exec --network FILE --capture all -- COMMAND
exec --network nowhere.json -- true | name the file of a scenario
grade lab.py | name it: --expect FILE
packetdrill | testbed packetdrill --selftests
columns goodputt | did you mean 'goodput_mbps'?
completion | example: testbed completion bash
doctor --mendd | did you mean '--mend'?
clean x | testbed clean --help
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (made / name).write_text(content if isinstance(content, str) else _with(*content))
    (made / "folder").mkdir()
    write_trial(made / "trial")
    return made


def _with(place: tuple[str | int, ...], value: object) -> str:
    """Return the scenario as JSON with another value in one place."""
    document = json.loads(json.dumps(SCENARIO))
    inside = document
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize("line", MISTAKES.strip().splitlines())
def test_a_mistake_is_answered(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing runs, and the status is that of a wrong request."""
    typed, _, answer = line.rpartition(" | ")
    monkeypatch.chdir(folder)
    assert main(shlex.split(typed)) == 2
    printed = capsys.readouterr()
    said = printed.err.splitlines()
    assert said[0].startswith("testbed: ") and said[-1].startswith("    hint: ")
    assert answer in said[-1] and FIELDS_HINT not in said[-1]
    assert "Traceback" not in printed.out + printed.err


def _odd_values() -> Iterator[tuple[str, str, str]]:
    for name, experiment in EXPERIMENTS.items():
        for axis, values in experiment.values().items():
            odd = ("nosuch",) if isinstance(values[0], str) else ("0", "-1", "0.5", "1e9", "nan")
            yield from ((name, axis, value) for value in odd)


def test_no_value_of_an_axis_is_a_traceback() -> None:
    """Every axis of every experiment: what it makes of odd values is scenarios, or a hint."""
    refused = 0
    for name, axis, value in _odd_values():
        experiment = EXPERIMENTS[name]
        first = {key: [str(each[0])] for key, each in experiment.values().items()}
        try:
            experiment.scenarios({**first, axis: [value]}, 1, quick=True)
        except UsageError as error:
            assert error.hint, (name, axis, value)
            refused += 1
    assert refused > len(EXPERIMENTS)
