"""The command line: the verbs, and the only place that prints and exits."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from rich.table import Table

from testbed import estimate, leftovers
from testbed.console import Watch, console, errors, track
from testbed.engines.choice import ENGINES, Choice, choose
from testbed.errors import TestbedError, UsageError, nearest
from testbed.experiment import Experiment
from testbed.plan import Need, Plan, make_plan
from testbed.process import TOOLS, require
from testbed.scenario import Scenario
from testbed.store import Status, open_trial
from testbed.sweep import Begun, Finished, Unfit, give_back, in_order, run_all

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

INTERRUPTED = 130


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
    run.add_argument("--engine", default="auto", metavar="|".join(ENGINES), help="where to run")
    run.add_argument("--rerun", action="store_true", help="run again what is there already")
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
    reduce.add_argument("pcap", nargs="+", type=Path, help="pcap or pcapng files")
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


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; every failure ends as a line, a hint, and an exit status."""
    signal.signal(signal.SIGTERM, _interrupt)
    parser = build_parser()
    try:
        options = parser.parse_args(arguments)
        if not options.verb:
            parser.print_help()
            return 2
        status: int = options.act(options)
        return status
    except UsageError as error:
        return _fail(error, 2)
    except TestbedError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        errors.print("testbed: interrupted; whole trials are kept, the same command goes on")
        return INTERRUPTED
    except BrokenPipeError:  # `testbed … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(TestbedError(f"{where}{error.strerror or error}", "is the disk full?"), 1)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _fail(error: TestbedError, status: int) -> int:
    errors.print(f"testbed: {error.message}", markup=False, soft_wrap=True)
    if error.hint:
        errors.print(f"    hint: {error.hint}", markup=False, soft_wrap=True)
    return status


def _experiment(options: argparse.Namespace) -> tuple[Experiment | None, list[Scenario]]:
    """The scenarios that the command line names, and the experiment unless it was a file."""
    if options.experiment.endswith(".json"):
        path = Path(options.experiment)
        if not path.is_file():
            raise UsageError(f"{path}: no such file", "name an experiment, or a scenario.json")
        if options.set or options.seeds > 1:
            raise UsageError("--set and --seeds are an experiment's", "edit the scenario instead")
        return None, [Scenario.from_json(path.read_text())]
    from experiments.catalogue import experiment

    found = experiment(options.experiment)
    if getattr(options, "until", None):
        from analysis.precision import LEAST_SEEDS, parse_target

        parse_target(options.until)  # a slip of the pen is found before anything runs
        options.seeds = max(options.seeds, LEAST_SEEDS)
    return found, found.scenarios(_settings(options.set, found), options.seeds, options.quick)


def _settings(texts: Sequence[str], experiment: Experiment) -> Mapping[str, Sequence[str]]:
    settings: dict[str, Sequence[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not all(values.split(",")):
            raise UsageError(
                f"--set {text}: not KEY=VALUE", f"settings: {', '.join(experiment.axes)}"
            )
        if key not in experiment.axes:
            raise UsageError(f"--set {key}: no such setting", nearest(key, experiment.axes))
        settings[key] = values.split(",")
    return settings


def list_experiments(_options: argparse.Namespace) -> int:
    """`testbed list`."""
    from experiments.catalogue import EXPERIMENTS

    table = Table("experiment", "paper", "trials", "guest", "what", box=None)
    for each in EXPERIMENTS.values():
        scenarios = each.scenarios({}, 1, quick=False)
        seconds = sum(estimate.guest_seconds(make_plan(s), s) for s in scenarios)
        table.add_row(each.name, each.paper, str(len(scenarios)), f"{seconds:.0f} s", each.about)
    console.print(table)
    return 0


def show_plan(options: argparse.Namespace) -> int:
    """`testbed plan`."""
    _, scenarios = _experiment(options)
    plans = [make_plan(scenario) for scenario in scenarios]
    table = Table("trial", "queue", "limit", "guest", "disk", box=None)
    for scenario, plan in zip(scenarios, plans, strict=True):
        for queue in plan.queues:
            if queue.sampled:
                table.add_row(
                    scenario.name,
                    f"{queue.interface} {queue.shaper.rate_mbit:g} Mbit/s",
                    f"{queue.shaper.queue.discipline} {queue.shaper.limit}",
                    f"{estimate.guest_seconds(plan, scenario):.0f} s",
                    f"{estimate.disk_mb(plan, scenario):.1f} MB",
                )
    console.print(table)
    seconds = sum(estimate.guest_seconds(p, s) for s, p in zip(scenarios, plans, strict=True))
    disk = sum(estimate.disk_mb(p, s) for s, p in zip(scenarios, plans, strict=True))
    console.print(
        f"{len(plans)} trials; about {seconds:.0f} s on one core, {disk:.0f} MB of disk, "
        f"{estimate.GUEST_MB} MB of memory for each guest that runs"
    )
    for warning in dict.fromkeys(warning for plan in plans for warning in plan.warnings):
        console.print(f"warning: {warning}", markup=False)
    if options.commands:
        for scenario, plan in zip(scenarios, plans, strict=True):
            _print_commands(scenario, plan)
    return 0


def _print_commands(scenario: Scenario, plan: Plan) -> None:
    console.print(f"\n{scenario.name}", markup=False)
    for parameter in plan.parameters:
        console.print(f"{parameter.file}: {parameter.value}", markup=False, soft_wrap=True)
    for node, settings in plan.sysctls:
        words = " ".join(f"{name}={value!r}" for name, value in settings)
        console.print(f"[{node}] sysctl -w {words}", markup=False, soft_wrap=True)
    for drops in plan.drops:
        numbers = ", ".join(map(str, drops.segments))
        console.print(
            f"[{drops.node}] {drops.interface}: {drops.flow} loses segments {numbers}",
            markup=False,
            soft_wrap=True,
        )
    flows = [command for flow in plan.flows for command in (flow.server, flow.client)]
    for command in (*plan.setup, *flows):
        line = f"[{command.node}] {' '.join(command.argv)}"
        console.print(line, markup=False, soft_wrap=True)


def run_experiment(options: argparse.Namespace) -> int:
    """`testbed run`."""
    experiment, scenarios = _experiment(options)
    needs = dict.fromkeys(need for s in scenarios for need in make_plan(s).needs)
    for tool in TOOLS:
        require(tool)
    choice = choose(options.engine, needs)
    _refuse_misspelt(choice.engine.controls(), needs)
    out = options.out or Path("results") / scenarios[0].experiment
    console.print(f"engine: {choice.engine.name} ({choice.reason})", markup=False)
    done = _run_trials(options, choice, scenarios, out)
    if options.until:
        done = _run_more(options, choice, experiment, done, out)
    if choice.engine.name == "guest" and not options.cluster:
        fresh = [each for each in done if each.fresh and each.status is Status.OK]
        estimate.learn((make_plan(t.scenario), t.scenario, t.record.wall_s) for t in fresh)
    if options.out is None:
        _link_latest(out)
    return _show_results(experiment, out, done)


def _run_trials(
    options: argparse.Namespace, choice: Choice, scenarios: Sequence[Scenario], out: Path
) -> list[Finished]:
    """Run what is not there yet, here or on a cluster; reduced when this returns."""
    from analysis.incoming import Incoming

    ordered = in_order(scenarios, _order(options.order))
    with Watch(len(scenarios)) as watch, Incoming(options.captures) as incoming:

        def tell(event: Begun | Finished | Unfit) -> None:
            watch(event)
            if isinstance(event, Finished) and event.status is Status.OK:
                incoming.add(event.path)

        if options.cluster:
            from testbed.cluster import run_on_cluster

            return run_on_cluster(options.cluster, ordered, choice, out, tell, options.rerun)
        return run_all(ordered, choice, out, tell, options.jobs, options.rerun)


def _run_more(
    options: argparse.Namespace,
    choice: Choice,
    experiment: Experiment | None,
    done: list[Finished],
    out: Path,
) -> list[Finished]:
    """Add seeds until the main metric is known as well as asked, or there are enough."""
    from analysis import metrics, precision

    if experiment is None:
        raise UsageError("--until needs an experiment", "a scenario.json has one seed")
    target, seeds = precision.parse_target(options.until), options.seeds
    options.rerun = False  # what ran in the first round is new
    while True:
        names = {each.path.name for each in done}
        frame = metrics.write_metrics(out)
        found = precision.widest(frame[frame["trial"].isin(names)], experiment.metric)
        console.print(
            f"{seeds} seeds: {experiment.metric} is known to ± {100 * found.relative:.2g} % "
            f"or better ({found.variant})",
            markup=False,
        )
        if found.relative <= target or seeds >= options.max_seeds:
            return done
        seeds = precision.seeds_needed(seeds, found.relative, target, options.max_seeds)
        settings = _settings(options.set, experiment)
        done = _run_trials(
            options, choice, experiment.scenarios(settings, seeds, options.quick), out
        )


def _link_latest(out: Path) -> None:
    """results/latest is the experiment that ran last."""
    link = out.parent / "latest"
    if link.is_symlink() or not link.exists():
        new = link.with_name(f".latest.{os.getpid()}")
        new.symlink_to(out.name)
        new.replace(link)


def _order(text: str) -> int | None:
    if text == "listed":
        return None
    if not text.isdigit():
        raise UsageError(f"--order {text}: neither a seed nor `listed`", "e.g. --order 7")
    return int(text)


def _refuse_misspelt(controls: frozenset[str], needs: Iterable[Need]) -> None:
    """A name that neither the table, nor Linux, nor this kernel knows is a slip of the pen."""
    from testbed.variants import KNOWN, spelling_hint

    for need in needs:
        if need.kind == "congestion control" and need.name not in KNOWN | controls:
            raise UsageError(f"unknown variant {need.name!r}", spelling_hint(need.name))


def _show_results(experiment: Experiment | None, out: Path, done: Sequence[Finished]) -> int:
    from analysis import metrics, tables

    frame = metrics.write_metrics(out)
    for warning in frame.attrs["warnings"]:
        errors.print(f"testbed: warning: {warning}", markup=False, soft_wrap=True)
    counts = {status: sum(each.status is status for each in done) for status in Status}
    if counts[Status.OK]:
        own = experiment.table if experiment else None
        shown = own(out, frame) if own else tables.summary(frame)
        table = Table(*shown.header, box=None)
        for row in shown.rows:
            table.add_row(*row)
        console.print(table)
        if shown.note:
            console.print(shown.note)
        if experiment:
            for figure in experiment.figures(out, frame):
                console.print(f"figure: {figure}", markup=False, soft_wrap=True)
    console.print(f"results: {out}/metrics.csv", markup=False, soft_wrap=True)
    console.print(", ".join(f"{number} {status}" for status, number in counts.items() if number))
    give_back(out)
    return 0 if counts[Status.OK] == len(done) else 1


def reduce_captures(options: argparse.Namespace) -> int:
    """`testbed reduce`."""
    if options.verify:
        return _verify(options.pcap)
    if options.format == "parquet" and options.out is None:
        raise UsageError("--format parquet goes to a file", "add --out FILE")
    if options.out is not None and options.format == "table":
        raise UsageError("--out takes csv, json or parquet", "add --format csv")
    if options.format == "table" and not (options.packets or options.bin or options.lengths):
        _print_flows(options.pcap)
        return 0
    from analysis import reduction

    tables = _told(_reductions(options))
    if options.format == "table":
        shown = map(reduction.for_people, tables) if options.packets else tables
        for rows in shown:
            _print_rows(rows)
    elif options.format == "parquet":
        reduction.write_parquet(tables, options.out)
    elif options.out is None:
        reduction.write_text(tables, options.format, sys.stdout)
    else:
        with options.out.open("w") as file:
            reduction.write_text(tables, options.format, file)
    return 0


def _print_flows(paths: Sequence[Path]) -> None:
    """Without pandas, which is slow to load."""
    from analysis.flows import HEADINGS, read_flows
    from analysis.reduction import each_of

    table = Table(*HEADINGS, box=None)
    for flows in track(each_of(paths, read_flows), len(paths)):
        _warn(flows.warnings)
        for row in flows.rows:
            table.add_row(*(_cell(value) for value in vars(row).values()))
    console.print(table)


def _reductions(
    options: argparse.Namespace,
) -> Iterator[tuple[pd.DataFrame, Sequence[str]]]:
    """Capture by capture, what was asked for and what was wrong."""
    from analysis import reduction
    from analysis.bins import parse_width
    from analysis.flows import capture_flows

    if options.packets:
        found = reduction.packet_tables(options.pcap)
    elif options.lengths:
        found = reduction.length_tables(options.pcap)
    elif options.bin:
        found = reduction.bin_tables(options.pcap, parse_width(options.bin))
    else:
        flows = reduction.each_of(options.pcap, capture_flows)
        found = ((each, each.attrs["warnings"]) for each in flows)
    return track(found, len(options.pcap))


def _told(tables: Iterator[tuple[pd.DataFrame, Sequence[str]]]) -> Iterator[pd.DataFrame]:
    for rows, warnings in tables:
        _warn(warnings)
        yield rows


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        errors.print(f"testbed: warning: {warning}", markup=False, soft_wrap=True)


def _print_rows(rows: pd.DataFrame) -> None:
    table = Table(*map(str, rows.columns), box=None)
    for row in rows.itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    console.print(table)


SHOWN_DIFFERENCES = 20  # of each capture


def _verify(paths: Sequence[Path]) -> int:
    """Compare with tshark, capture by capture; differences are a failure."""
    from analysis.verify import Verdict, verify

    total = Verdict()
    for path in paths:
        found = verify(path)
        total += found
        console.print(f"{path}: {found}", markup=False, soft_wrap=True)
        for each in found.differences[:SHOWN_DIFFERENCES]:
            console.print(f"    {each}", markup=False, soft_wrap=True)
        if (hidden := len(found.differences) - SHOWN_DIFFERENCES) > 0:
            console.print(f"    and {hidden} more")
    if len(paths) > 1:
        console.print(f"{len(paths)} captures: {total}", markup=False)
    return 1 if total.differences else 0


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.5g}"  # NaN: not known
    return str(value)


def inspect_trial(options: argparse.Namespace) -> int:
    """`testbed inspect`."""
    from analysis import inspection

    view = inspection.view_of(open_trial(options.trial), options.flow, options.point)
    if options.packets:
        for line in inspection.aligned(inspection.packet_table(view, options.packets)):
            console.print(line, markup=False, soft_wrap=True)
        return 0
    for line in inspection.description(view):
        console.print(line, markup=False, soft_wrap=True)
    obstacle = "" if options.print else inspection.obstacle()
    if options.print or obstacle:
        for line in inspection.instructions(obstacle):
            console.print(line, markup=False, soft_wrap=True)
        return 0
    inspection.open_window(view)
    return 0


def compare_folders(options: argparse.Namespace) -> int:
    """`testbed compare`."""
    from analysis.compare import compare_results
    from analysis.compare_table import closing_lines, report_table
    from analysis.tolerances import choose_tolerances

    tolerances = choose_tolerances(options.metric, options.tolerance)
    report = compare_results(options.a, options.b, tolerances)
    shown = report_table(report, options.all)
    if shown.rows:
        table = Table(box=None)
        for heading in shown.header:  # where it is narrow, the settings' names are folded
            table.add_column(heading, overflow="fold", no_wrap=heading != "setting")
        for row in shown.rows:
            table.add_row(*row)
        console.print(table)
        console.print(shown.note, markup=False, soft_wrap=True)
    for line in closing_lines(report):
        console.print(line, markup=False, soft_wrap=True)
    return 0 if report.agrees else 1


def check(options: argparse.Namespace) -> int:
    """`testbed check`."""
    from testbed import check as checks

    if options.variants:
        for line in checks.variant_lines():
            console.print(line, markup=False, soft_wrap=True)
        return 0
    status = 0
    for finding in checks.findings():
        mark = "ok     " if finding.ok else "missing" if finding.needed else "-      "
        console.print(f"{mark} {finding.what}: {finding.state}", markup=False, soft_wrap=True)
        if not finding.ok and finding.mend:
            console.print(f"        {finding.mend}", markup=False, soft_wrap=True)
        status |= finding.needed and not finding.ok
    return int(status)


def clean(_options: argparse.Namespace) -> int:
    """`testbed clean`."""
    removed = leftovers.clean()
    for each in removed:
        console.print(f"removed {each}", markup=False, soft_wrap=True)
    if not removed:
        console.print("nothing was left behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())
