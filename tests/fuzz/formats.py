"""The formats that the testbed reads from others: sound inputs, how they are damaged, and readers.

A reader returns, or raises a TestbedError; all else is a fault (`attempts.py`). Captures have a
fuzzer in C (`tests/fuzz/run`).
"""

from __future__ import annotations

import gzip
import json
import random
import re
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.figures import figure_cache
from analysis.laboratory.observation import read_observation
from analysis.laboratory.observed_network import built_networks
from analysis.laboratory.rules import laboratory_findings
from analysis.results.reduction import reduction_of, reductions_of, stored_verdict
from analysis.statistics.packet_comparison import read_files
from analysis.trials.samples import read_columns, read_samples
from testbed.cli.packetdrill import junit, summary
from testbed.kernels.packetdrill import ScriptEnd, ScriptRun, output_lines
from testbed.own_files.scenario_file import document_from_options
from testbed.plan.plan import tasks
from testbed.programs.expectations import read_expectations
from testbed.scenario.reading import read_document, read_scenario
from testbed.scenario.trace import parse_trace, read_path_file, read_trace
from testbed.store.names import (
    GUEST_ERRORS,
    GUEST_OUTPUT,
    QDISCS_FILE,
    QUEUE_SAMPLES,
    RECORD,
    REDUCED,
    RUN_FILE,
    VERDICT_FILE,
)
from testbed.store.reading import listed_trials, open_trial, run_command
from tests import scenarios
from tests.robustness.scenario_mutations import (
    NUMBERS,
    TEXTS,
    garbled,
    mutated_json,
    sound_scenarios,
)
from tests.sealing import seal
from tests.trial_writer import write_trial

EXPECTATIONS = Path(__file__).parents[2] / "experiments" / "course" / "bufferbloat.toml"
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
TOPO_WORDS = ("tree", "torus", "linear", "single", "minimal", "depth", "fanout", "k", "n", "bw")
LINK_WORDS = ("delay", "loss", "jitter", "max_queue_size", "variant", "start_s", "5ms", "1e999us")
Damage = Callable[[random.Random, bytes], bytes]


@dataclass(frozen=True)
class Format:
    """A format: its sound inputs, the damage, and a reader, which has a prepared folder."""

    bases: Callable[[], tuple[bytes, ...]]
    read: Callable[[bytes, Path], object]
    damage: Damage
    prepare: Callable[[Path], object] = lambda _folder: None


def damaged_json(dice: random.Random, document: bytes) -> bytes:
    """Values that are others; or bytes, if they are no JSON already."""
    try:
        return mutated_json(dice, document)
    except (ValueError, RecursionError):
        return garbled(dice, document)


def damaged_text(dice: random.Random, text: bytes) -> bytes:
    """Up to three numbers and stretches of bytes that are others."""
    for _ in range(dice.choice((1, 1, 2, 3))):
        numbers = list(NUMBER.finditer(text))
        if numbers and dice.random() < 0.5:
            place = dice.choice(numbers)
            other = str(dice.choice(NUMBERS)).encode()
            text = text[: place.start()] + other + text[place.end() :]
        elif text:
            text = garbled(dice, text)
    return text


def damaged_words(dice: random.Random, text: bytes) -> bytes:
    """Words between commas, equals signs and lines that are others."""
    words = re.split(rb"([,=\n])", text)
    for _ in range(dice.choice((1, 1, 2, 3))):
        pool = dice.choice((NUMBERS, TEXTS, TOPO_WORDS, LINK_WORDS))
        words[dice.randrange(len(words))] = str(dice.choice(pool)).encode(errors="replace")
    return b"".join(words)


def read_and_plan(data: bytes, _folder: Path) -> None:
    """Read a scenario, and plan it."""
    tasks([read_scenario(data)])


def _graphs() -> tuple[bytes, ...]:
    made = (scenarios.fat_tree(2), scenarios.access("shaped"), scenarios.router(delay_ms=5))
    return tuple(scenario.to_json().encode() for scenario in made)


def read_topo(data: bytes, _folder: Path) -> None:
    """A Topo's name with arguments, links' options and a flow: a line each."""
    topo, link, flow, *_ = [*data.decode(errors="replace").splitlines(), "", "", ""]
    document = document_from_options(topo, link, [flow] if flow else [], 5.0)
    tasks([read_document(document.data).scenario])


def _trial(folder: Path) -> Path:
    return folder / "trial"


def _write_reduced_trial(folder: Path) -> None:
    reduction_of(open_trial(write_trial(_trial(folder), samples=True)))


def _sound(name: str) -> Callable[[], tuple[bytes, ...]]:
    """Return what gives a file of a sound trial."""

    def content() -> tuple[bytes, ...]:
        with tempfile.TemporaryDirectory() as folder:
            _write_reduced_trial(Path(folder))
            return ((_trial(Path(folder)) / name).read_bytes(),)

    return content


def read_in_folder(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], None]:
    """Return what writes a file, and reads it by its folder."""

    def in_place(data: bytes, folder: Path) -> None:
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        read(folder)

    return in_place


def read_in_trial(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], None]:
    """Return what puts a file into a sound trial, and reads it there."""

    in_folder = read_in_folder(name, read)
    return lambda data, folder: in_folder(data, _trial(folder))


def _read_verdict(trial: Path) -> None:
    verdict = stored_verdict(open_trial(trial))
    if verdict:
        json.loads(verdict.to_json())


def _read_reduction(trial: Path) -> None:
    (reduction,) = reductions_of([open_trial(trial)], plots=True)
    assert len(reduction.flows) == len(reduction.trial.scenario.flows)


def _read_samples(trial: Path) -> None:
    opened = open_trial(seal(trial))
    read_samples(opened, QUEUE_SAMPLES)
    read_columns(opened, QUEUE_SAMPLES, tuple(QUEUE_SAMPLES.columns))


def _reduce_again(trial: Path) -> None:
    (trial / REDUCED).unlink(missing_ok=True)
    reduction_of(open_trial(seal(trial)))


def read_packetdrill(data: bytes, folder: Path) -> None:
    """What packetdrill printed, as it comes to the terminal and into JUnit's XML."""
    half = len(data) // 2
    (folder / GUEST_OUTPUT).write_bytes(data[:half])
    (folder / GUEST_ERRORS).write_bytes(data[half:])
    run = ScriptRun("6.1", folder / "script.pkt", "script.pkt", "ipv4")
    end = ScriptEnd(run, False, 0.1, output_lines(run, folder))
    assert all(line.isprintable() for line in (*end.said, end.reason, *summary([end])))
    ET.fromstring(junit([end]).partition("?>")[2])


def _judge_observation(path: Path) -> None:
    observation = read_observation(path, path.parent)
    laboratory_findings(observation)
    built_networks(observation)


def _read_run(folder: Path) -> None:
    run_command(folder)
    listed_trials(folder)


PATHS = b"time_s,delay_ms,rate_mbit,up\n0,20,50,1\n15,32.5,,\n30,,48,0\n30.2,,,1\n"
PACKETDRILL_OUTPUT = (
    b"script.pkt:12: error handling packet: live packet field tcp_data_offset: expected: 8 (0x8)\n"
    b"script packet:  0.100000 S. 0:0(0) ack 1 <mss 1460,nop,wscale 8>\n"
    b"actual packet:  0.100012 S. 0:0(0) ack 1 win 65535 <mss 1460>\nscript.pkt:3: runtime error\n"
)
FIGURES = json.dumps({"made_of": "ab", "figures": ["one.png", "two.png"], "own_tables": False})
RUN = json.dumps({"command": "testbed run variants", "ended": "now", "trials": ["a", "b"]})
OBSERVED = b"""controls reno cubic
began 100 200
command 1000 1 1 cubic /sbin/ip link add h1-eth0 type veth peer name s1-eth0
exit 1500 1 0
namespace 2000 2 h1 cubic
device 2 h1-eth0 3 1000 2000 20 1
address 2 10.0.0.1/8
qdisc 2 netem 1000 20 5 1000 0 0 5000000 1
command 3000 3 2 cubic /sbin/tc qdisc add dev h1-eth0 root handle 5:0 netem delay 5ms limit 10
exit 3500 3 0
command 3000 4 2 cubic /sbin/tc qdisc add dev h1-eth0 parent 5:1 tbf rate 10mbit latency 10ms
exit 3500 4 0
command 3000 5 2 cubic /usr/bin/iperf3 -c 10.0.0.2 -t 10 -C reno
namespace 5000 2 h1 reno
device 2 h1-eth0 3 100000 200000 2000 1
line 900 /home/user/lab.py:10 link%20delay%205ms
 x-1 [000] ..... 0.003000: inet_sock_set_state: family=AF_INET sport=5001 dport=80 saddr=10.0.0.1 \
daddr=10.0.0.2 saddrv6=::1 daddrv6=::1 oldstate=TCP_CLOSE newstate=TCP_SYN_SENT
# entries-in-buffer/entries-written: 5/5
"""
QDISCS = (
    b'{"router": [{"kind": "codel", "handle": "30:", "dev": "router-eth0", '
    b'"packets": 9, "drops": 1, "requeues": 0, "pdrop": 0}]}'
)
FORMATS: dict[str, Format] = {
    "scenario": Format(
        lambda: tuple(text.encode() for text in sound_scenarios()),
        read_and_plan,
        damaged_json,
    ),
    "graph": Format(_graphs, read_and_plan, damaged_json),
    "topo": Format(
        lambda: (
            b"tree,2,2\nbw=10,delay=5ms\nh1,h4,variant=bbr",
            b"linear,k=2,n=2\nbw=10,delay=5ms,loss=1,max_queue_size=100\nh1,h2,start_s=1",
            b"torus,3,3\n\nh1,h2",
            b"topologies.dumbbell:Dumbbell\n\n",
        ),
        read_topo,
        damaged_words,
    ),
    "record": Format(
        _sound(RECORD), read_in_trial(RECORD, open_trial), damaged_json, _write_reduced_trial
    ),
    "verdict": Format(
        _sound(VERDICT_FILE),
        read_in_trial(VERDICT_FILE, _read_verdict),
        damaged_json,
        _write_reduced_trial,
    ),
    "compared": Format(
        _sound(RECORD), read_in_trial(RECORD, read_files), damaged_json, _write_reduced_trial
    ),
    "samples": Format(
        _sound(QUEUE_SAMPLES.file),
        read_in_trial(QUEUE_SAMPLES.file, _read_samples),
        damaged_text,
        _write_reduced_trial,
    ),
    "expectations": Format(
        lambda: (EXPECTATIONS.read_bytes(),),
        read_in_folder("x.toml", lambda folder: read_expectations(folder / "x.toml")),
        damaged_text,
    ),
    "reduction": Format(
        lambda: tuple(map(gzip.decompress, _sound(REDUCED)())),
        lambda data, folder: read_in_trial(REDUCED, _read_reduction)(gzip.compress(data), folder),
        damaged_json,
        _write_reduced_trial,
    ),
    "queues": Format(
        lambda: (QDISCS,),
        read_in_trial(QDISCS_FILE, _reduce_again),
        damaged_json,
        _write_reduced_trial,
    ),
    "trace": Format(
        lambda: (b"1\n1\n2\n5\n5\n5\n9\n30\n", b"10\n20\n20\n1000\n"),
        read_in_folder("link.trace", lambda folder: parse_trace(read_trace("link.trace", folder))),
        damaged_text,
    ),
    "path": Format(
        lambda: (PATHS,),
        read_in_folder("path.csv", lambda folder: read_path_file(folder / "path.csv")),
        damaged_text,
    ),
    "packetdrill": Format(lambda: (PACKETDRILL_OUTPUT,), read_packetdrill, damaged_text),
    "observed": Format(
        lambda: (OBSERVED,),
        read_in_folder("observed.txt", lambda folder: _judge_observation(folder / "observed.txt")),
        damaged_text,
    ),
    "figures": Format(
        lambda: (FIGURES.encode(),),
        read_in_folder("x.drawn.json", lambda folder: figure_cache.read(folder, "x", "ab")),
        damaged_json,
    ),
    "run": Format(lambda: (RUN.encode(),), read_in_folder(RUN_FILE, _read_run), damaged_json),
}
