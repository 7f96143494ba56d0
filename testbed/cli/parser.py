"""The command line's words: every verb with its options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from testbed.cli.check import check
from testbed.cli.clean import clean
from testbed.cli.compare import compare_folders
from testbed.cli.inspect import inspect_trial
from testbed.cli.plan import list_experiments, show_plan
from testbed.cli.reduce import reduce_captures
from testbed.cli.report import report
from testbed.cli.run import run_experiment
from testbed.engines.choice import AUTO, CHOICES
from testbed.errors import UsageError


class Parser(argparse.ArgumentParser):
    """argparse, but what is wrong is said in our own two lines."""

    def error(self, message: str) -> NoReturn:
        """Called by argparse for a wrong command line."""
        raise UsageError(message, f"{self.prog} --help")


def build_parser() -> Parser:
    """All verbs with their options; each help ends with an example."""
    parser = Parser(prog="testbed", description="A laboratory for TCP on real Linux kernels.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)

    def verb(
        name: str, act: Callable[[argparse.Namespace], int], about: str, example: str
    ) -> Parser:
        made = verbs.add_parser(name, help=about, description=about, epilog=f"example: {example}")
        made.set_defaults(act=act)
        return made

    checks = verb("check", check, "what this machine can run, and what is missing", "testbed check")
    checks.add_argument(
        "--variants", action="store_true", help="each TCP variant: its recipe, its deviations"
    )
    verb("list", list_experiments, "the experiments", "testbed list")
    plan = verb(
        "plan",
        show_plan,
        "a dry run: trials, buffers, commands, warnings, estimates",
        "testbed plan router-bottleneck --set variant=bbr --commands",
    )
    _experiment_options(plan)
    plan.add_argument("--commands", action="store_true", help="print every command of every node")
    run = verb(
        "run",
        run_experiment,
        "run an experiment, or one scenario from a file",
        "testbed run router-bottleneck --set variant=cubic,bbr --seeds 3",
    )
    _experiment_options(run)
    run.add_argument("--engine", default=AUTO, metavar="|".join(CHOICES), help="where to run")
    run.add_argument("--rerun", action="store_true", help="run again what is there already")
    run.add_argument(
        "--retry-invalid",
        type=_positive,
        default=0,
        metavar="N",
        help="run trials that the verdict calls invalid again, up to N times",
    )
    run.add_argument("--until", metavar="ci=N%", help="add seeds until the intervals are so narrow")
    run.add_argument(
        "--max-seeds", type=_positive, default=30, metavar="N", help="but no more than these (30)"
    )
    run.add_argument(
        "--order", default="1", metavar="SEED|listed", help="shuffled by a seed (1), or as listed"
    )
    run.add_argument("--jobs", type=_positive, metavar="N", help="trials side by side")
    run.add_argument(
        "--captures",
        default="keep",
        metavar="keep|zstd|drop",
        help="what becomes of them once they are reduced",
    )
    run.add_argument(
        "--cluster", metavar="ADDRESS", help="hand trials to a dask scheduler, e.g. tcp://host:8786"
    )
    run.add_argument("--out", type=Path, metavar="DIR", help="results folder (results/EXPERIMENT)")
    reduce = verb(
        "reduce",
        reduce_captures,
        "captures become a table, a row a flow; any capture, not only ours",
        "testbed reduce results/*/*/captures/sender1-eth0.pcapng --format csv",
    )
    reduce.add_argument(
        "pcap",
        nargs="+",
        type=Path,
        help="pcap or pcapng files; a trial's folder, or one of results: all captures in it",
    )
    rows = reduce.add_mutually_exclusive_group()
    rows.add_argument("--packets", action="store_true", help="a row a packet, not a row a flow")
    rows.add_argument(
        "--lengths", action="store_true", help="packet lengths by bucket, with bursts, as Wireshark"
    )
    rows.add_argument("--bin", metavar="WIDTH", help="a row a flow and bin of time: 1s, 100ms")
    reduce.add_argument("--format", choices=("table", "csv", "json", "parquet"), default="table")
    reduce.add_argument("--out", type=Path, metavar="FILE", help="write there, not to the terminal")
    rows.add_argument(
        "--verify", action="store_true", help="run tshark beside, and list every difference"
    )
    reports = verb(
        "report",
        report,
        "results as one page, with the papers' claims answered; one trial: checks and timelines; "
        "several: their checks side by side",
        "testbed report results/dumbbell-load results/dumbbell-pairs --out report.html",
    )
    _report_options(reports)
    inspect = verb(
        "inspect",
        inspect_trial,
        "open a trial's flow in Wireshark with our profile, or print how to",
        "testbed inspect results/fall-floyd/tahoe-lost4-… --flow tcp --point receiver",
    )
    inspect.add_argument("trial", type=Path, help="a trial's directory")
    inspect.add_argument("--flow", default="", metavar="NAME", help="which flow (the first)")
    inspect.add_argument(
        "--point",
        default="sender",
        metavar="sender|receiver|bottleneck-in|bottleneck-out",
        help="where it was captured (sender)",
    )
    how = inspect.add_mutually_exclusive_group()
    how.add_argument("--print", action="store_true", help="only print the command and the filter")
    how.add_argument("--packets", type=_positive, metavar="N", help="print the first N packets")
    compare = verb(
        "compare",
        compare_folders,
        "two results folders, cell by cell; exit status 0 if they agree, 1 if not",
        "testbed compare results/guest results/host --tolerance throughput_mbps=5%,timeouts=2",
    )
    compare.add_argument("a", type=Path, metavar="A", help="a results folder")
    compare.add_argument("b", type=Path, metavar="B", help="another")
    compare.add_argument("--metric", default="", metavar="NAME,…", help="only these metrics")
    compare.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="a metric's: an amount in its unit, or N%% of A's mean",
    )
    compare.add_argument("--all", action="store_true", help="every line, however many agree")
    verb("clean", clean, "remove what killed runs left behind, and only that", "testbed clean")
    return parser


def _experiment_options(parser: Parser) -> None:
    parser.add_argument("experiment", help="an experiment's name, or a scenario.json")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE,…", help="values of one setting"
    )
    parser.add_argument("--seeds", type=_positive, default=1, metavar="N", help="repeats (1)")
    parser.add_argument("--quick", action="store_true", help="shorter trials, for a first look")


def _report_options(parser: Parser) -> None:
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="FOLDER", help="results folders, or trials'"
    )
    parser.add_argument(
        "--reference", type=Path, metavar="DIR", help="ns-2's figures as CSV, to stand beside ours"
    )
    parser.add_argument(
        "--flow", default="", metavar="NAME", help="of a trial: which flow (the first)"
    )
    for name, what in (("start", "from"), ("stop", "to")):
        parser.add_argument(
            f"--{what}", dest=name, type=float, metavar="S", help=f"{what} this second of the trial"
        )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="the page (FOLDER/report.html); one trial's figures: a folder; several: a CSV file",
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
