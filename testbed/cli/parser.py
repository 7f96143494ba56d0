"""The command line: every verb with its options."""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from testbed.cli.compare import compare_folders
from testbed.cli.completion import SHELLS, complete
from testbed.cli.evaluate import run_evaluations
from testbed.cli.inspect import inspect_trial
from testbed.cli.kernel import kernel
from testbed.cli.machine import check, clean
from testbed.cli.new_experiment import new_experiment
from testbed.cli.plan import list_experiments, show_plan
from testbed.cli.reduce import reduce_captures
from testbed.cli.report import report
from testbed.cli.run import run_experiment
from testbed.cli.runs import runs
from testbed.cli.schema import print_schema
from testbed.errors import UsageError
from testbed.runs.engine_choice import AUTO, CHOICES
from testbed.runs.progress import console
from testbed.store import METRICS_CSV, REPORT, SCENARIO


class Parser(argparse.ArgumentParser):
    """argparse, but errors in the command line are printed like all our errors."""

    def error(self, message: str) -> NoReturn:
        """Raise our error for a wrong command line."""
        raise UsageError(message, f"{self.prog} --help")


@dataclass(frozen=True)
class Verb:
    """A verb: what it does, an example for its help, and the function that adds its options."""

    name: str
    act: Callable[[argparse.Namespace], int]
    about: str
    example: str
    add_options: Callable[[Parser], None]


def build_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(prog="testbed", description="A laboratory for TCP on real Linux kernels.")
    parser.add_argument("--version", action=_Version, nargs=0, help="the version of the testbed")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    for verb in VERBS:
        made = verbs.add_parser(
            verb.name,
            help=verb.about,
            description=verb.about,
            epilog=f"example: testbed {verb.example}",
        )
        made.set_defaults(act=verb.act)
        verb.add_options(made)
    return parser


class _Version(argparse.Action):
    """The action of `--version`, which reads the version only when it runs."""

    def __call__(self, parser: argparse.ArgumentParser, *_others: object) -> NoReturn:
        """Print the version and exit."""
        console.print(f"testbed {importlib.metadata.version('tcp-testbed')}")
        parser.exit()


def _no_options(_parser: Parser) -> None:
    pass


def _check_options(parser: Parser) -> None:
    parser.add_argument(
        "--variants", action="store_true", help="each TCP variant: its recipe, its deviations"
    )


def _experiment_options(parser: Parser) -> None:
    parser.add_argument(
        "experiment",
        nargs="?",
        default="",
        help=f"an experiment's name, a file of your own (`testbed new`), or a {SCENARIO}",
    )
    _topo_options(parser)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE,…", help="values of one axis"
    )
    parser.add_argument("--seeds", type=_positive, default=1, metavar="N", help="repeats (1)")
    parser.add_argument("--quick", action="store_true", help="shorter trials, for a first look")
    parser.add_argument(
        "--sensitivity",
        action="store_true",
        help="also every trial with what papers leave open varied a little: starts, buffers, "
        "delays, ECN, timers; `report --claims` says which answers survive it",
    )


def _topo_options(parser: Parser) -> None:
    """Add the options for a Mininet Topo with flows in place of an experiment."""
    parser.add_argument(
        "--topo",
        default="",
        metavar="FILE.py:CLASS,ARG=…",
        help="a Mininet Topo in place of an experiment; also mn's own: tree,depth=2,fanout=2",
    )
    parser.add_argument(
        "--link",
        default="",
        metavar="bw=10,delay=5ms,…",
        help="with --topo: options of the links that have none of their own, as `mn --link tc,…`",
    )
    parser.add_argument(
        "--flow",
        action="append",
        default=[],
        metavar="SRC,DST,FIELD=VALUE…",
        help="with --topo: a flow, e.g. h1,h2,variant=bbr,start_s=5; once for each",
    )
    parser.add_argument(
        "--duration", type=float, default=30.0, metavar="S", help="with --topo: seconds (30)"
    )


def _new_options(parser: Parser) -> None:
    parser.add_argument("name", help="the experiment's name; its file is NAME.py")


def _plan_options(parser: Parser) -> None:
    _experiment_options(parser)
    parser.add_argument("--commands", action="store_true", help="print every command of every node")


def _run_options(parser: Parser) -> None:
    _experiment_options(parser)
    add = parser.add_argument
    add("--engine", default=AUTO, metavar="|".join(CHOICES), help="where to run")
    add("--rerun", action="store_true", help="also run trials that exist already")
    add(
        "--retry-invalid",
        type=_positive,
        default=0,
        metavar="N",
        help="rerun trials whose verdict is invalid, up to N times",
    )
    add("--until", metavar="ci=N%", help="add seeds until the confidence intervals are that narrow")
    add(
        "--max-seeds",
        type=_positive,
        default=30,
        metavar="N",
        help="the largest number of seeds for --until (30)",
    )
    add(
        "--order",
        default="1",
        metavar="SEED|listed",
        help="order: shuffled by a seed (1), or as listed",
    )
    add("--jobs", type=_positive, metavar="N", help="number of trials to run in parallel")
    add(
        "--captures",
        default="keep",
        metavar="keep|zstd|drop",
        help="what happens to captures once they are reduced",
    )
    add(
        "--watch",
        action="store_true",
        help="show the run as a page in a browser of this machine while it goes on; the page of "
        f"the results is then the run's {REPORT}",
    )
    add("--cluster", metavar="ADDRESS", help="run on a dask cluster, e.g. tcp://host:8786")
    _run_results_options(parser)


def _run_results_options(parser: Parser) -> None:
    """Add the options for where results go, and how they are printed."""
    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", help="results folder (results/EXPERIMENT)")
    add(
        "--name",
        default="",
        help="the run's name (its time); a run of that name is replaced, its trials stay",
    )
    add(
        "--format",
        choices=("table", "csv", "json", "md"),
        default="table",
        help="how the results are printed; all but `table` are alone on stdout",
    )
    columns = parser.add_mutually_exclusive_group()
    columns.add_argument("--columns", metavar="NAME,…", help=f"these columns of {METRICS_CSV}")
    columns.add_argument("--all", action="store_true", help="every column of the wide table")


def _evaluate_options(parser: Parser) -> None:
    add = parser.add_argument
    add("name", nargs="?", default="", help="a congestion control or variant")
    add("--queue", default="", metavar="NAME", help="a queue, alone or for the congestion control")
    add("--against", default="", metavar="NAME,…", help="the others (cubic,bbr,linux-reno)")
    add("--quick", action="store_true", help="shorter trials, for a first look")
    add("--seeds", type=_positive, metavar="N", help="repeats (5; with --quick 3)")
    add("--engine", metavar="|".join(CHOICES), help="where to run")
    add("--jobs", type=_positive, metavar="N", help="number of trials to run in parallel")
    add("--captures", metavar="keep|zstd|drop", help="what happens to reduced captures")
    add("--cluster", metavar="ADDRESS", help="run on a dask cluster, e.g. tcp://host:8786")
    add("--out", type=Path, metavar="PATH", help=f"the page (results/evaluate-NAME/{REPORT})")


def _reduce_options(parser: Parser) -> None:
    parser.add_argument(
        "pcap",
        nargs="+",
        type=Path,
        help="pcap or pcapng files; a trial's or a results folder stands for all captures in it",
    )
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument("--packets", action="store_true", help="one row per packet, not per flow")
    rows.add_argument(
        "--lengths",
        action="store_true",
        help="packet lengths by bucket, with bursts, as in Wireshark",
    )
    rows.add_argument("--bin", metavar="WIDTH", help="one row per flow and time bin: 1s, 100ms")
    rows.add_argument(
        "--verify", action="store_true", help="also run tshark, and list every difference"
    )
    parser.add_argument(
        "--tunnels", action="store_true", help="read what VXLAN and GENEVE carry, not as plain UDP"
    )
    parser.add_argument("--format", choices=("table", "csv", "json", "parquet"), default="table")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write to a file instead of the terminal"
    )


def _report_options(parser: Parser) -> None:
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="results folders, or directories of trials",
    )
    parser.add_argument(
        "--claims", action="store_true", help="what the results say of the papers' claims"
    )
    parser.add_argument(
        "--reference",
        type=Path,
        metavar="DIR",
        help="with --claims: a folder of ns-2's numbers as CSV, printed beside ours",
    )
    parser.add_argument(
        "--single-file",
        action="store_true",
        help="put everything into the page, so that it can be sent as one file",
    )
    parser.add_argument(
        "--flow", default="", metavar="NAME", help="for a trial: the flow to draw (the first)"
    )
    for name, what in (("start", "from"), ("stop", "to")):
        parser.add_argument(
            f"--{what}", dest=name, type=float, metavar="S", help=f"{what} this second of the trial"
        )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help=f"the page (FOLDER/{REPORT}); one trial's figures: a folder; several: a CSV file",
    )


def _inspect_options(parser: Parser) -> None:
    parser.add_argument("trial", type=Path, help="a trial's directory")
    parser.add_argument("--flow", default="", metavar="NAME", help="the flow to show (the first)")
    parser.add_argument(
        "--point",
        default="sender",
        metavar="sender|receiver|bottleneck-in|bottleneck-out",
        help="where it was captured (sender)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--print", action="store_true", help="only print the command and the filter")
    how.add_argument("--packets", type=_positive, metavar="N", help="print the first N packets")


def _kernel_options(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "words",
        nargs="*",
        metavar="list|build|remove|same",
        help="what to do (list), and with what",
    )
    add("--source", type=Path, metavar="DIR", help="a source tree of Linux")
    add("--name", default="", help="the kernel's name: --set kernel=NAME")
    add(
        "--patches",
        type=Path,
        metavar="DIR",
        help="more patches; one with the name of ours replaces it",
    )
    add("--config", type=Path, metavar="FILE", help="lines of a configuration, which override ours")
    add("--add", type=Path, metavar="DIR", help="tcp_NAME.c and sch_NAME.c to build in")
    add("--as", dest="good", default="", metavar="KERNEL", help="same: the kernel to compare with")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="same: values of the experiment's axes",
    )
    add("--quick", action="store_true", help="same: shorter trials")
    add("--out", type=Path, metavar="DIR", help="same: results folder (results/kernel-same)")


def _compare_options(parser: Parser) -> None:
    what = "a results folder; with --packets also a trial"
    parser.add_argument("a", type=Path, metavar="A", help=what)
    parser.add_argument("b", type=Path, metavar="B", help="another one")
    parser.add_argument(
        "--packets",
        action="store_true",
        help="whether both hold the same packets, samples, numbers and verdicts, trial by trial",
    )
    parser.add_argument("--metric", default="", metavar="NAME,…", help="only these metrics")
    parser.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="of a metric: an amount in its unit, or N%% of A's mean",
    )
    parser.add_argument("--all", action="store_true", help="every line, even if many agree")


def _completion_options(parser: Parser) -> None:
    parser.add_argument("shell", choices=tuple(SHELLS), help="for which shell")


def _runs_options(parser: Parser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="FOLDER | remove RUN…",
        help="list the runs of results/ or of a results folder, or remove runs and those of their "
        "trials that no other run has",
    )
    parser.add_argument(
        "--unused",
        action="store_true",
        help="with remove: also the trials that no run has, of the folders with these runs",
    )


VERBS = (
    Verb(
        "check",
        check,
        "what this machine can run, and what is missing",
        "check",
        _check_options,
    ),
    Verb(
        "list",
        list_experiments,
        "the experiments, with those in files of this folder",
        "list",
        _no_options,
    ),
    Verb(
        "new",
        new_experiment,
        "write an example of an experiment into this folder, for you to change",
        "new buffer_size",
        _new_options,
    ),
    Verb(
        "schema",
        print_schema,
        "the JSON Schema of scenarios, with which editors complete and check them",
        "schema >scenario.schema.json",
        _no_options,
    ),
    Verb(
        "plan",
        show_plan,
        "a dry run: trials, buffers, commands, warnings, estimates",
        "plan router-bottleneck --set variant=bbr --commands",
        _plan_options,
    ),
    Verb(
        "run",
        run_experiment,
        "run an experiment, or one scenario from a file",
        "run router-bottleneck --set variant=cubic,bbr --seeds 3",
        _run_options,
    ),
    Verb(
        "evaluate",
        run_evaluations,
        "the standard evaluations of a congestion control or a queue against others, as a page",
        "evaluate veno --quick",
        _evaluate_options,
    ),
    Verb(
        "runs",
        runs,
        "the runs in results/, each with its own table and figures; or remove some",
        "runs remove 20260131-093000",
        _runs_options,
    ),
    Verb(
        "reduce",
        reduce_captures,
        "turn captures (any, not only ours) into a table with one row per flow",
        "reduce results/*/*/captures/sender1-eth0.pcapng --format csv",
        _reduce_options,
    ),
    Verb(
        "report",
        report,
        "results as one page, two folders with their differences; one trial: its checks and "
        "timelines; several trials: their checks side by side",
        f"report results/dumbbell-load results/dumbbell-pairs --out {REPORT}",
        _report_options,
    ),
    Verb(
        "inspect",
        inspect_trial,
        "open a trial's flow in Wireshark with our profile, or print how to",
        "inspect results/fall-floyd/tahoe-lost4-… --flow tcp --point receiver",
        _inspect_options,
    ),
    Verb(
        "compare",
        compare_folders,
        "two results folders, by cells or by packets; exit status 0 if they agree, 1 if not",
        "compare results/guest results/host --tolerance throughput_mbps=5%,timeouts=2",
        _compare_options,
    ),
    Verb(
        "kernel",
        kernel,
        "the guest's kernels: list, build VERSION, build --source DIR --name NAME, remove NAME; "
        "same: does a tree send the same packets?",
        "kernel build --source ~/linux --name mine",
        _kernel_options,
    ),
    Verb(
        "clean",
        clean,
        "remove what killed runs left behind, and nothing else",
        "clean",
        _no_options,
    ),
    Verb(
        "completion",
        complete,
        "print what a shell needs to complete this command line",
        "completion bash >>~/.bash_completion",
        _completion_options,
    ),
)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
