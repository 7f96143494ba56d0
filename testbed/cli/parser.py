"""The command line: every verb with its options."""

from __future__ import annotations

import argparse
import pkgutil
import re
import sys
import textwrap
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from testbed.errors import UsageError, near, nearest, quoted
from testbed.runs.console import console
from testbed.store.names import COMMANDS, FIGURES, METRICS_CSV, REPORT, SCENARIO, WATCH_PAGE

LOUDNESS = ("-v", "--verbose", "-q", "--quiet")
LOUDNESS_HINT = f"a trial's {COMMANDS} has all of its commands with their output"


class _Help(argparse.HelpFormatter):
    """argparse's help, but an example stays on a line, from which it can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example: ") else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """argparse, but errors in the command line are our errors, each with what to type instead."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(exit_on_error=False, **settings)
        self._read = argparse.Namespace()

    def error(self, message: str) -> NoReturn:
        """Raise our error where an argument is missing; argparse has no exception for that."""
        required = [action for action in self._actions if action.required]
        missing = [each for each in required if getattr(self._read, each.dest, None) is None]
        verb = self.prog.partition(" ")[2]
        names = ", ".join(map(_name, missing)).upper()
        raise UsageError(f"{verb}: missing {names}", f"{self.epilog}")

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """Raise our error for an abbreviation of several options."""
        options = super()._get_option_tuples(option_string)
        if len(options) > 1:
            names = " or ".join(str(option[1]) for option in options)
            raise UsageError(f"ambiguous option {option_string}", f"write it out: {names}")
        return options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise our error for a word that is not one of the choices."""
        if action.choices is None or value in action.choices:
            return
        is_verb = action.dest == "verb"
        what = "unknown verb" if is_verb else f"{_name(action)}: unknown value"
        hint = nearest(value, map(str, action.choices))
        if is_verb and value == "help":
            hint = "testbed --help, or: testbed VERB --help"
        raise UsageError(f"{what} {quoted(value)}", hint)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Raise our error for a text that is not of the option's type."""
        name = _name(action)
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if action.type is float:
                message = f"{name}: {quoted(arg_string)} is not a number"
                raise UsageError(message, f"e.g. {name} 2.5") from error
            hint = f"e.g. {name} 3" if action.type is _positive else f"{self.prog} --help"
            raise UsageError(f"{name}: {error.message}", hint) from error

    def _refusal(self, error: argparse.ArgumentError, typed: Sequence[str]) -> UsageError:
        """Return our error for an option without its value, or beside one that excludes it."""
        for group in self._mutually_exclusive_groups:
            names = [_name(action) for action in group._group_actions]
            others = [name for name in names if name != error.argument_name and name in typed]
            if error.argument_name in names and others:
                both = f"{error.argument_name} and {others[0]}: only one of them"
                return UsageError(both, f"leave out {error.argument_name}")
        return UsageError(f"{error.argument_name}: {error.message}", f"{self.prog} --help")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown options at the verb, whose own options are near; verbs before them."""
        self._read = argparse.Namespace() if namespace is None else namespace
        try:
            known, unknown = super().parse_known_args(args, self._read)
        except argparse.ArgumentError as error:
            typed = [word.partition("=")[0] for word in (sys.argv[1:] if args is None else args)]
            raise self._refusal(error, typed) from error
        options = [word for word in unknown if word.startswith("-")]
        if options:
            close = near(options[0].partition("=")[0], self._option_string_actions)
            hint = f"did you mean {close!r}?" if close else f"{self.prog} --help lists the options"
            if self._subparsers is not None and not close:
                hint = f"options stand after the verb: testbed VERB {options[0]}"
            hint = LOUDNESS_HINT if options[0] in LOUDNESS else hint
            raise UsageError(f"unknown option {options[0]}", hint)
        if unknown:
            raise UsageError(f"one argument too many: {quoted(unknown[0])}", f"{self.prog} --help")
        return known, unknown


def _name(action: argparse.Action) -> str:
    """Return what messages call an option or an argument."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest
    return "/".join(action.option_strings) or metavar


@dataclass(frozen=True)
class Verb:
    """A verb: the function that it runs, what it does and an example for its help, its options."""

    name: str
    function: str  # MODULE:NAME in this folder, imported when the verb is
    about: str
    example: str
    add_options: Callable[[Parser], None] = lambda _parser: None

    def act(self, options: argparse.Namespace) -> int:
        """Run the verb; returns the exit status."""
        status: int = pkgutil.resolve_name(f"testbed.cli.{self.function}")(options)
        return status


GROUPS = {  # what one wants to do → its verbs, the most used first
    "run experiments": ("run", "plan", "list", "new", "evaluate", "demo"),
    "look at results": (
        *("report", "compare", "watch", "inspect", "whatif", "explore", "rewind", "export"),
        *("runs", "columns"),
    ),
    "read captures of any origin": ("reduce", "fit"),
    "prove results to others": ("bundle", "verify"),
    "check this machine": ("check", "doctor", "clean"),
    "run programs in virtual time": ("mininet", "exec", "shell", "grade"),
    "work on kernels": ("kernel", "packetdrill"),
    "work on transports in user space": ("stack",),
    "for editors and shells": (),  # and all others
}


class _Overview(_Help):
    """The help of the whole command line: verbs by what one wants to do, a line or two each."""

    def format_help(self) -> str:
        """Return the verbs in their groups."""
        grouped = {name for names in GROUPS.values() for name in names}
        rest = tuple(verb.name for verb in VERBS if verb.name not in grouped)
        verbs = {verb.name: verb for verb in VERBS}
        lines = ["usage: testbed VERB …", "", "A laboratory for TCP on real Linux kernels."]
        for group, names in GROUPS.items():
            lines += ["", f"{group}:"]
            for name in names or rest:
                clause, head = re.split("[;:] ", verbs[name].about)[0], f"  {name:12}"
                indent = " " * len(head)
                lines += textwrap.wrap(head + clause, self._width, subsequent_indent=indent)
        example = "testbed run router-bottleneck --quick"
        lines += ["", "testbed VERB --help says all of a verb; testbed --version"]
        return "\n".join([*lines, f"example: {example}", "tutorial: docs/tutorial.md", ""])


def build_parser(typed: Container[str] | None = None) -> Parser:
    """Return the parser of the whole command line; given its words, with their options alone."""
    parser = Parser(prog="testbed", formatter_class=_Overview)
    parser.add_argument("--version", action=_Version, nargs=0, help="the version of the testbed")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser, prog="testbed")
    for verb in VERBS:
        example = f"example: testbed {verb.example}"
        made = verbs.add_parser(
            verb.name,
            help=verb.about,
            description=verb.about,
            epilog=example,
            formatter_class=_Help,
        )
        made.set_defaults(act=verb.act)
        if typed is None or verb.name in typed:
            verb.add_options(made)
    return parser


class _Version(argparse.Action):
    """The action of `--version`, which reads the version only when it runs."""

    def __call__(self, parser: argparse.ArgumentParser, *_others: object) -> NoReturn:
        """Print the version and exit."""
        from importlib.metadata import version

        console.print(f"testbed {version('tcp-testbed')}")
        parser.exit()


def _flag(parser: argparse._ActionsContainer, name: str, help: str) -> None:
    parser.add_argument(name, action="store_true", help=help)


def _value(
    parser: argparse._ActionsContainer, name: str, metavar: str | None, help: str, **more: Any
) -> None:
    parser.add_argument(name, metavar=metavar, help=help, **more)


def _values(parser: argparse._ActionsContainer, name: str, metavar: str, help: str) -> None:
    """Add an option that can be given several times."""
    _value(parser, name, metavar, help, action="append", default=[])


def _number(
    parser: argparse._ActionsContainer, name: str, help: str, default: int | None = None
) -> None:
    _value(parser, name, "N", help, type=_positive, default=default)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _check_options(parser: Parser) -> None:
    _flag(parser, "--variants", "each TCP variant: its recipe, its deviations")


def _doctor_options(parser: Parser) -> None:
    help = "first compile what is missing, and remove what killed runs left behind"
    _flag(parser, "--mend", help)


def _experiment_options(parser: Parser) -> None:
    help = f"an experiment's name, a file of your own (`testbed new`), or a {SCENARIO}"
    _value(parser, "experiment", None, help, nargs="?", default="")
    help = "a Mininet Topo in place of an experiment; also mn's own: tree,depth=2,fanout=2"
    _value(parser, "--topo", "FILE.py:CLASS,ARG=…", help, default="")
    help = "with --topo: options of the links that have none of their own, as `mn --link tc,…`"
    _value(parser, "--link", "bw=10,delay=5ms,…", help, default="")
    help = "with --topo: a flow, e.g. h1,h2,variant=bbr,start_s=5; once for each"
    _values(parser, "--flow", "SRC,DST,FIELD=VALUE…", help)
    _value(parser, "--duration", "S", "with --topo: seconds (30)", type=float)
    _values(parser, "--set", "KEY=VALUE,…", "values of one axis")
    _number(parser, "--seeds", "repeats (1)", default=1)
    _flag(parser, "--quick", "shorter trials, for a first look")
    _flag(parser, "--realistic", "links aggregate, hosts hold interrupts and take time to receive")


def _columns_options(parser: Parser) -> None:
    _value(parser, "words", "WORD", "only columns with such a word in their names", nargs="*")


def _new_options(parser: Parser) -> None:
    parser.add_argument("name", help="the experiment's name; its file is NAME.py")


def _plan_options(parser: Parser) -> None:
    _experiment_options(parser)
    _flag(parser, "--commands", "print every command of every node")
    _flag(parser, "--all", "all trials, and also the fields that have their defaults")


def _run_options(parser: Parser) -> None:
    from testbed.runs.engine_choice import AUTO

    _experiment_options(parser)
    _place_options(parser)
    parser.set_defaults(engine=AUTO, captures="keep", cluster="")
    _flag(parser, "--rerun", "also run trials that exist already")
    help = "rerun trials whose verdict is invalid, up to N times"
    _number(parser, "--retry-invalid", help, default=0)
    help = "add seeds until the confidence intervals are that narrow, or until the papers' claims "
    help += "are decided, which is looked at after 10, 20, 40 and 80 seeds"
    _value(parser, "--until", "ci=N%|answered", help, default="")
    _number(parser, "--max-seeds", "the largest number of seeds for --until (30; answered: 80)")
    help = "the time that --until may take: no seeds are added that are not expected to fit"
    _value(parser, "--budget", "30min", help, default="")
    help = "order: shuffled by a seed (1), or as listed"
    _value(parser, "--order", "SEED|listed", help, default="1")
    help = "show the run as a page in a browser of this machine while it goes on; the page of "
    help += f"the results is then the run's {REPORT}"
    _flag(parser, "--watch", help)
    _value(parser, "--out", "DIR", "results folder (results/EXPERIMENT)", type=Path)
    help = "the run's name (its time); an existing run of that name is replaced, its trials stay"
    _value(parser, "--name", None, help, default="")
    help = "what the mean of each cell has to be; exit status 1 if it is not"
    _values(parser, "--expect", "'METRIC >= 0.95 * baseline'", help)
    _value(parser, "--baseline", "FILE", f"the {METRICS_CSV} of an earlier run", type=Path)
    _value(parser, "--junit", "FILE", "what was expected, as JUnit's XML", type=Path)
    help = "how the results are printed; all but `table` are alone on stdout"
    formats = ("table", "csv", "json", "md", "latex")
    _value(parser, "--format", None, help, choices=formats, default="table")
    columns = parser.add_mutually_exclusive_group()
    _value(columns, "--columns", "NAME,…", f"these columns of {METRICS_CSV}")
    _flag(columns, "--all", f"all columns of {METRICS_CSV}")


def _place_options(parser: Parser) -> None:
    from testbed.runs.engine_choice import CHOICES

    _value(parser, "--engine", "|".join(CHOICES), "where to run")
    _number(parser, "--jobs", "number of trials to run in parallel")
    help = "what happens to captures once they are reduced"
    _value(parser, "--captures", "keep|zstd|drop", help)
    _value(parser, "--cluster", "ADDRESS", "run on a dask cluster, e.g. tcp://host:8786")
    _unconfined_option(parser)


def _unconfined_option(parser: Parser) -> None:
    from testbed.guest.boot import UNCONFINED

    help = "run programs also where the host cannot confine their guest, and they could change "
    help += "your files (`testbed check` says whether it can)"
    _flag(parser, UNCONFINED, help)


def _evaluate_options(parser: Parser) -> None:
    _value(parser, "name", None, "a congestion control or variant", nargs="?", default="")
    help = "a queue, alone or for the congestion control"
    _value(parser, "--queue", "NAME", help, default="")
    _value(
        parser, "--against", "NAME,…", "what it is compared with (cubic,bbr,linux-reno)", default=""
    )
    help = "the kernel on which all of it runs, such as one with your control built in"
    _value(parser, "--kernel", "NAME", help, default="")
    _values(parser, "--set", "KEY=VALUE", "one value of an axis, where an evaluation has it")
    _flag(parser, "--quick", "shorter trials, for a first look")
    _number(parser, "--seeds", "repeats (5; with --quick 3)")
    help = "run all of it twice, the second time with links that aggregate and hosts that take "
    help += "time to receive, and say what that changes; drawn settings run only with these"
    _flag(parser, "--realistic", help)
    help = "in settings that are drawn (rate, round trip, buffer, flows, losses, queue), as many "
    help += "as there is time for"
    _value(parser, "--budget", "30min", help, default="")
    help = "search for the worst setting (10min unless --budget says), and write it as a scenario"
    _value(parser, "--adversary", "starvation|stall|harm", help, default="")
    help = "test cases, step by step: those of the BBR draft, or RFC 9331's requirements for L4S"
    _value(parser, "--suite", "bbr-draft|l4s", help, default="")
    help = "as --budget, until every mean effect is known"
    _value(parser, "--until", "decided", help, default="")
    _place_options(parser)
    _value(parser, "--out", "PATH", f"the page (results/evaluate-NAME/{REPORT})", type=Path)


def _reduce_options(parser: Parser) -> None:
    help = "pcap or pcapng files, or folders: all captures in them"
    _value(parser, "pcap", None, help, nargs="+", type=Path)
    rows = parser.add_mutually_exclusive_group()
    _flag(rows, "--packets", "one row per packet, not per flow")
    _flag(rows, "--lengths", "packet lengths by bucket, with bursts, as in Wireshark")
    _value(rows, "--bin", "WIDTH", "one row per flow and time bin: 1s, 100ms")
    _flag(rows, "--verify", "also run tshark, and list all differences")
    _flag(parser, "--tunnels", "read what VXLAN and GENEVE carry, not as plain UDP")
    formats = ("table", "csv", "json", "parquet")
    _value(parser, "--format", None, "how to write the table", choices=formats, default="table")
    _value(parser, "--out", "FILE", "write to a file instead of the terminal", type=Path)


def _fit_options(parser: Parser) -> None:
    _value(parser, "capture", None, "a pcap or pcapng file, taken at the sender of data", type=Path)
    _value(parser, "--flow", "N", "the TCP flow, as `reduce` numbers them (the largest)", type=int)
    _flag(parser, "--tunnels", "read what VXLAN and GENEVE carry, not as plain UDP")
    help = "the scenario (fitted.json)"
    _value(parser, "--out", "FILE", help, type=Path, default=Path("fitted.json"))


def _report_options(parser: Parser) -> None:
    help = "results folders, bundles, or directories of trials; or a program's folder"
    _value(parser, "results", "FOLDER", help, nargs="+", type=Path)
    _flag(parser, "--claims", "what the results say of the papers' claims")
    help = "with --claims: a folder of ns-2's numbers as CSV, printed beside ours"
    _value(parser, "--reference", "DIR", help, type=Path)
    help = "put everything into the page, so that it can be sent as one file"
    _flag(parser, "--single-file", help)
    help = "paper: only figures, a column wide and without titles, as PDF, and their data as CSV"
    _value(parser, "--style", None, help, choices=("page", "paper"), default="page")
    _value(parser, "--flow", "NAME", "for a trial: the flow to draw (the first)", default="")
    _span_options(parser)
    help = f"the page (FOLDER/{REPORT}); one trial's figures: a folder; several: a CSV file"
    _value(parser, "--out", "PATH", help, type=Path)


def _bundle_options(parser: Parser) -> None:
    help = "results folders with all of their runs, or single runs (results/latest)"
    _value(parser, "results", "FOLDER", help, nargs="+", type=Path)
    _value(parser, "--out", "FILE.zip", "the bundle", type=Path, required=True)
    help = "captures along, or their hashes alone: they are made again where it is verified"
    _value(parser, "--captures", None, help, choices=("keep", "drop"), default="keep")
    _value(parser, "--title", "TEXT", "what the results are (the experiments' names)", default="")
    _values(parser, "--author", "NAME", "an author; once for each (Anonymous)")
    help = "the licence of the results, by its name at spdx.org (CC-BY-4.0)"
    _value(parser, "--license", "NAME", help, default="CC-BY-4.0")


def _verify_options(parser: Parser) -> None:
    _value(parser, "bundle", "FILE.zip", "a bundle of anybody's", type=Path)
    _number(parser, "--trials", "how many trials run again (12)")
    help = "your word, which chooses the trials: another word, other trials (a random one)"
    _value(parser, "--nonce", "WORD", help, default="")
    _flag(parser, "--all", "all trials run again")
    _number(parser, "--jobs", "number of trials to run in parallel")


def _watch_options(parser: Parser) -> None:
    help = "a trial's directory, or a capture of anybody's (no network, one place)"
    _value(parser, "trial", "TRIAL|CAPTURE", help, type=Path)
    _value(parser, "--flow", "NAME", "the flow that is shown first (the largest)", default="")
    _span_options(parser)
    help = "open at a packet, with the kernel's calls that sent it: runs the trial again under gdb"
    _value(parser, "--why", "N|retransmission", help, default="")
    help = "film the page from its first second to its last, too; FILE.mp4 takes ffmpeg"
    _value(parser, "--video", "FILE.gif|FILE.mp4", help, type=Path)
    _value(parser, "--seconds", "S", "how long the film is (8)", type=float, default=8.0)
    help = f"the page (TRIAL/{FIGURES}/{WATCH_PAGE}, CAPTURE.html)"
    _value(parser, "--out", "FILE", help, type=Path)


def _span_options(parser: Parser) -> None:
    for name, what in (("start", "from"), ("stop", "to")):
        help = f"{what} this second of the trial"
        _value(parser, f"--{what}", "S", help, dest=name, type=float)


def _export_options(parser: Parser) -> None:
    from analysis.export.formats import EXPORTS

    parser.add_argument("trial", type=Path, help="a trial's directory")
    _value(
        parser, "--format", None, "whose format (perfetto)", choices=[*EXPORTS], default="perfetto"
    )
    _value(parser, "--flow", "NAME", "the flow (the first)", default="")
    _value(parser, "--out", "FILE", "the file (beside the trial)", type=Path)


def _inspect_options(parser: Parser) -> None:
    parser.add_argument("trial", type=Path, help="a trial's directory")
    _value(parser, "--flow", "NAME", "the flow to show (the first)", default="")
    points = "sender|receiver|bottleneck-in|bottleneck-out"
    _value(parser, "--point", points, "where it was captured (sender)", default="sender")
    how = parser.add_mutually_exclusive_group()
    _flag(how, "--print", "only print the command and the filter")
    _number(how, "--packets", "print the first N packets")


def _rewind_options(parser: Parser) -> None:
    parser.add_argument("trial", type=Path, help="a trial's directory")
    _value(parser, "--at", "S", "stop at this second of the trial", type=float)
    help = "stop when this packet of the capture is captured, or the first retransmission"
    _value(parser, "--packet", "N|retransmission", help, default="")
    _value(parser, "--flow", "NAME", "the flow whose sockets are shown (the first)", default="")
    _unconfined_option(parser)
    points = "sender|receiver|bottleneck-in|bottleneck-out"
    _value(parser, "--point", points, "where the packet was captured (sender)", default="sender")
    how = parser.add_mutually_exclusive_group()
    _flag(how, "--gdb", "stay there in gdb; `help trial` and `trial` say what can be done")
    help = "print the calls of functions from there on: 'tcp_rack*', or tracepoints: 'tcp:*'"
    _value(how, "--trace", "PATTERN,…", help, default="")
    help = "print the calls of one function, with its arguments or these expressions in C"
    _value(how, "--probe", "FUNCTION[:EXPRESSION,…]", help, default="")
    _value(parser, "--until", "S", "print calls until this second (the end)", type=float)
    _value(parser, "--out", "DIR", "keep what ran again in this results folder", type=Path)


def _seconds(text: str) -> float:
    try:
        return float(text.removesuffix("s"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no second, as 3.2 is") from None


def _delayed_packet(text: str) -> tuple[int, float]:
    match = re.fullmatch(r"(\d+)=(\d+(?:\.\d+)?)(?:ms)?", text)
    if not match or not int(match[1]) or not float(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no packet with milliseconds, as 812=5 is")
    return int(match[1]), float(match[2])


def _what_if_options(parser: Parser) -> None:
    parser.add_argument("trial", type=Path, help="a trial's directory")
    _values(parser, "--set", "PLACE=VALUE", "a field of the scenario, with another value")
    help = "from this second on: a link's rate_mbit, delay_ms, loss, up, its queue's limit, ecn "
    help += "and options, a node's sysctl, a flow's control"
    _value(parser, "--at", "S", help, type=_seconds)
    help = "lose this packet of the capture bottleneck-out (`testbed inspect` numbers them)"
    one = parser.add_mutually_exclusive_group()
    _number(one, "--drop", help)
    help = "let this packet of it arrive some milliseconds later"
    _value(one, "--delay", "N=MS", help, type=_delayed_packet)
    _number(one, "--mark", "mark this packet of it with CE, as a queue does")
    help = "let a full queue take this packet of the capture bottleneck-in, which it dropped"
    _number(one, "--spare", help)
    _value(parser, "--flow", "NAME", "the flow whose packet it is (the first)", default="")
    help = "another queue of its path, by interface or link, such as r1-eth1 or r1-r2"
    _value(parser, "--queue", "NAME", help, default="")
    _number(parser, "--seeds", "in N networks, from the trial's seed on", default=1)
    _value(parser, "--out", "DIR", "results folder (results/what-if)", type=Path)
    _number(parser, "--jobs", "trials at once (one for each core)")


def _explore_options(parser: Parser) -> None:
    help = "a scenario's .json with two flows (the usual one: two flows through a bottleneck)"
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE.json", help=help)
    _values(parser, "--set", "PLACE=V,V,…", "a field to move, with its values")
    help = "run all positions, and write a page that has them and needs nothing else"
    _value(parser, "--page", "FILE.html", help, type=Path)
    _number(parser, "--jobs", "trials at once for --page (one for each core)")


def _kernel_options(parser: Parser) -> None:
    help = "what to do (list), and with what"
    _value(parser, "words", "list|build|remove|same|compare|test|check", help, nargs="*")
    _value(parser, "--source", "DIR", "a source tree of Linux", type=Path)
    _value(parser, "--name", None, "the kernel's name: --set kernel=NAME", default="")
    help = "additional patches; one with the same name replaces ours"
    _value(parser, "--patches", "DIR", help, type=Path)
    help = "lines of a configuration, which override ours"
    _value(parser, "--config", "FILE", help, type=Path)
    _value(parser, "--add", "DIR", "tcp_NAME.c and sch_NAME.c to build in", type=Path)
    _unconfined_option(parser)
    flavours = {
        "--machine": "build: the image of whole programs (`testbed exec`)",
        "--debug": "build: VERSION-debug, which looks for the kernel's own errors",
        "--for-selftests": "build: the image of Linux's own tests of the network",
    }
    one = parser.add_mutually_exclusive_group()
    for option, help in flavours.items():
        flavour = option.removeprefix("--for").lstrip("-")
        one.add_argument(
            option, dest="flavour", action="store_const", const=flavour, default="", help=help
        )
    _value(parser, "--as", "KERNEL", "same: the kernel to compare with", dest="good", default="")
    _values(parser, "--set", "KEY=VALUE,…", "same: values of the experiment's axes")
    _flag(parser, "--quick", "same: shorter trials")
    help = "same, compare, check, test: results folder (results/kernel-same, …)"
    _value(parser, "--out", "DIR", help, type=Path)
    help = "compare, check: the answer as a mail, as Markdown for a pull request, or as JSON"
    _value(parser, "--format", None, help, choices=("mail", "md", "json"), default="mail")
    _value(parser, "--since", "COMMIT", "check: what the tree's change began with", default="")
    help = "compare, check: only trials with this in their name, such as cubic or red-ecn"
    _value(parser, "--only", "TEXT", help, default="")
    _number(parser, "--jobs", "compare, check, test: guests at once (one for each core)")
    help = "test: the version of Linux whose tests run (the newest whose source is here)"
    _value(parser, "--selftests", "VERSION", help, default="")
    help = "test KERNEL selftests, check: only tests with this name, with or without its ending"
    _value(parser, "-t", "NAME", help, dest="tests", action="append", default=[])
    help = "… : seconds of virtual time after which a test is ended (7200)"
    _number(parser, "--limit", help, default=7200)
    help = "… : seconds of wall time after which it is given up (1200)"
    _number(parser, "--timeout", help, default=1200)
    _flag(parser, "--capture", "… : run a test that fails again, with its packets captured")
    _number(parser, "--repeat", "… : run each with N seeds, and name what differs")
    _flag(parser, "--busy", "… : keep every core busy meanwhile")


def _stack_options(parser: Parser) -> None:
    help = "what to do (list), and with which: names, or folders of yours (all that come along)"
    _value(parser, "words", "list|build|check STACK…", help, nargs="*")


def _program_options(parser: Parser) -> None:
    help = "what the guest's randomness follows from: the same seed, the same bytes (1)"
    _number(parser, "--seed", help, default=1)
    _machine_options(parser)
    _flag(parser, "--in-place", "also copy the files of files/ into the working folder")
    help = "status 3, often at once, if something is wrong with the laboratory (docs/mininet.md)"
    _flag(parser, "--check", help)


def _machine_options(parser: Parser) -> None:
    _value(parser, "--kernel", "NAME", "the guest's kernel: `testbed kernel list`", default="")
    help = "results folder (results/VERB/NAME): the output, and in files/ what was written in "
    help += "the working folder"
    _value(parser, "--out", "DIR", help, type=Path)
    _number(parser, "--limit", "seconds of virtual time after which it is ended (3600)", 3600)
    _number(parser, "--timeout", "seconds of wall time after which it is given up (3600)", 3600)
    _number(parser, "--memory", "MB of the guest, its changed files included (1024)", 1024)
    help = "a variable of the environment; without a value, as it is here"
    _values(parser, "--env", "NAME[=VALUE]", help)
    _unconfined_option(parser)


def _mininet_options(parser: Parser) -> None:
    _program_options(parser)
    _capture_option(parser)
    help = (
        "a script, which runs in its own folder, and its arguments; a laboratory of Kathará's and "
        "what to do there (docs/others.md); or -- and a command: -- mn …"
    )
    _value(parser, "words", "SCRIPT", help, nargs=argparse.REMAINDER)


def _capture_option(parser: Parser) -> None:
    help = "write the packets of these interfaces as pcapng, their flows as a table, and samples "
    help += "of queues and sockets: all, or names of nodes (h1), ports (s1:2), interfaces (s1-eth2)"
    _value(parser, "--capture", "NAME,…", help, default="")


def _exec_options(parser: Parser) -> None:
    _program_options(parser)
    help = "the file of a scenario, whose network is made first: its nodes are network namespaces"
    _value(parser, "--network", "FILE", help, type=Path)
    _capture_option(parser)
    help = "run it with N seeds, and compare the tests that it names; its output goes to files"
    one = parser.add_mutually_exclusive_group()
    _number(one, "--repeat", help)
    help = "run it on up to N machines that are slow in other ways, until a test fails, and say "
    help += "what is enough for that (docs/suites.md)"
    _number(one, "--explore", help)
    _value(one, "--perturb", "FILE", "run it as an exploration has found it to fail", type=Path)
    _flag(parser, "--busy", "with --repeat, --explore: keep every core busy meanwhile")
    help = "the command, which runs in the current folder; with --network also lines, each a word: "
    help += "'NODE: COMMAND', with & at its end a server, 'NODE@SECONDS: COMMAND'"
    _value(parser, "words", "-- COMMAND", help, nargs=argparse.REMAINDER)


def _shell_options(parser: Parser) -> None:
    _program_options(parser)
    help = "a command in place of the shell"
    _value(parser, "words", "COMMAND", help, nargs=argparse.REMAINDER)


def _grade_options(parser: Parser) -> None:
    help = "the script, which runs in its own folder"
    _value(parser, "script", "SCRIPT", help)
    _value(parser, "--seeds", "N,…", "the seeds of its runs (1)", default="1")
    help = "the numbers that its runs have to show, with their ranges (the script's name, .toml)"
    _value(parser, "--expect", "FILE", help, type=Path)
    help = "a run with which something is wrong, as of `testbed mininet --check`, fails, too"
    _flag(parser, "--check", help)
    _machine_options(parser)


def _packetdrill_options(parser: Parser) -> None:
    help = "scripts, or folders with scripts, also in folders below"
    _value(parser, "words", "SCRIPT", help, nargs="*")
    help = "Linux's own scripts, of this version (6.12 or later)"
    _value(parser, "--selftests", "VERSION", help, default="")
    help = "the kernels to run them on: `testbed kernel list`"
    _value(parser, "--kernel", "NAME,…", help, default="")
    help = "the packetdrill program (the one in PATH)"
    _value(parser, "--packetdrill", "FILE", help, type=Path)
    help = "microseconds by which a packet's time may be off (the script's, or packetdrill's 4000)"
    _number(parser, "--tolerance", help)
    help = "results folder (results/packetdrill): a failed script's packets and its capture"
    _value(parser, "--out", "DIR", help, type=Path)
    _value(parser, "--junit", "FILE", "also write the results as JUnit XML", type=Path)
    _number(parser, "--jobs", "number of scripts to run in parallel")
    _unconfined_option(parser)


def _compare_options(parser: Parser) -> None:
    help = "a results folder, a bundle, or a file of Flent or iperf3; with --packets also a trial"
    _value(parser, "a", "A", help, type=Path)
    _value(parser, "b", "B", "another one", type=Path)
    help = "whether both hold the same packets, samples, numbers and verdicts, trial by trial"
    _flag(parser, "--packets", help)
    _value(parser, "--metric", "NAME,…", "only these metrics", default="")
    help = "the tolerance of a metric: an amount in its unit, or N%% of A's mean"
    _values(parser, "--tolerance", "KEY=VALUE,…", help)
    _flag(parser, "--all", "all lines, even if many agree")
    help = "of Flent's and iperf3's files: goodput and delay over time, as PNG, SVG and CSV"
    _value(parser, "--figure", "FILE.png", help, type=Path)


def _completion_options(parser: Parser) -> None:
    from testbed.cli.completion import SHELLS

    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def _runs_options(parser: Parser) -> None:
    help = "list the runs of results/ or of a results folder, or remove runs and those of their "
    help += "trials that no other run has"
    _value(parser, "words", "FOLDER | remove RUN…", help, nargs="*")
    help = "with remove: also the trials that no run has, of the folders with these runs"
    _flag(parser, "--unused", help)


VERBS = (
    Verb(
        "demo",
        "demo:demo",
        "five TCP variants through one bottleneck, with a figure, in half a minute",
        "demo",
    ),
    Verb(
        "check",
        "machine:check",
        "what this machine can run, and what is missing",
        "check",
        _check_options,
    ),
    Verb(
        "doctor",
        "machine:doctor",
        "check, and how fast a trial is, and what disk and caches hold; mend what can be mended",
        "doctor --mend",
        _doctor_options,
    ),
    Verb(
        "list",
        "plan:list_experiments",
        "the experiments, with those in files of this folder",
        "list",
    ),
    Verb(
        "new",
        "new_experiment:new_experiment",
        "write an example of an experiment into this folder, for you to change",
        "new buffer_size",
        _new_options,
    ),
    Verb(
        "schema",
        "schema:print_schema",
        "the JSON Schema of scenarios, with which editors complete and check them",
        "schema >scenario.schema.json",
    ),
    Verb(
        "plan",
        "plan:show_plan",
        "a dry run, with the trials, buffers, commands, warnings and estimates of a run",
        "plan router-bottleneck --set variant=bbr --commands",
        _plan_options,
    ),
    Verb(
        "run",
        "run:run_experiment",
        "run an experiment, or one scenario from a file",
        "run router-bottleneck --set variant=cubic,bbr --seeds 3",
        _run_options,
    ),
    Verb(
        "evaluate",
        "evaluate:run_evaluations",
        "the standard evaluations of a congestion control or a queue against others, as a page",
        "evaluate veno --quick",
        _evaluate_options,
    ),
    Verb(
        "runs",
        "runs:runs",
        "the runs in results/, each with its own table and figures; or remove some",
        "runs remove 20260131-093000",
        _runs_options,
    ),
    Verb(
        "reduce",
        "reduce:reduce_captures",
        "turn captures (any, not only ours) into a table with one row per flow",
        "reduce results/*/*/captures/sender1-eth0.pcapng --format csv",
        _reduce_options,
    ),
    Verb(
        "fit",
        "fit:fit_capture",
        "estimate the network that a capture's TCP flow crossed, as a scenario to run",
        "fit download.pcapng",
        _fit_options,
    ),
    Verb(
        "report",
        "report:report",
        "results as one page (of two folders, with their differences); one trial: its checks and "
        "timelines; several trials: their checks side by side",
        "report results/latest",
        _report_options,
    ),
    Verb(
        "watch",
        "watch:watch",
        "a page on which a trial's packets move through its network, with the sequence plane, the "
        "window, queues, a ladder, and why packets were sent; of any capture all but the network",
        "watch results/variants/cubic-… --from 0 --to 2",
        _watch_options,
    ),
    Verb(
        "bundle",
        "bundle:bundle",
        "results as one file that others can verify: scenarios, hashes, tables, figures, kernels, "
        "and what a paper's artifact needs (docs/artifacts.md)",
        "bundle results/latest --out paper.zip",
        _bundle_options,
    ),
    Verb(
        "verify",
        "bundle:verify",
        "run trials of a bundle again, and compare every byte; exit status 1 if one differs",
        "verify paper.zip --trials 12 --nonce rhubarb",
        _verify_options,
    ),
    Verb(
        "export",
        "export:export",
        "a trial's TCP flow as qlog, as a trace for Perfetto, or as tcptrace's graph for xplot",
        "export results/fall-floyd/tahoe-lost4-… --format xplot",
        _export_options,
    ),
    Verb(
        "inspect",
        "inspect:inspect_trial",
        "open a trial's flow in Wireshark with our profile, or print how to",
        "inspect results/fall-floyd/tahoe-lost4-… --flow tcp --point receiver",
        _inspect_options,
    ),
    Verb(
        "rewind",
        "rewind:rewind_trial",
        "a trial again with the same packets, stopped at an instant or a packet: what TCP knows "
        "there, gdb, calls of the kernel's functions; exit status 1 if the packets are others",
        "rewind results/variants/cubic-… --packet retransmission --gdb",
        _rewind_options,
    ),
    Verb(
        "whatif",
        "what_if:ask",
        "a trial again with one thing changed: the packets until then are the same; exit status 1 "
        "if they are not, or a trial is invalid",
        "whatif results/what-if/… --at 3.2 --set links.1.forward.rate_mbit=5",
        _what_if_options,
    ),
    Verb(
        "explore",
        "explore:explore",
        "a page with sliders: every position is a run a second ago, or one within the page",
        "explore --page bottleneck.html --set topology.bottleneck.rate_mbit=2,10,50",
        _explore_options,
    ),
    Verb(
        "compare",
        "compare:compare_folders",
        "two results folders, by cells or by packets; exit status 0 if they agree, 1 if not",
        "compare results/guest results/host --tolerance throughput_mbps=5%,timeouts=2",
        _compare_options,
    ),
    Verb(
        "kernel",
        "kernel:kernel",
        "list, build and compare the guest's kernels: list, build VERSION, "
        "build --source DIR --name NAME, remove NAME; "
        "same: does a tree send the same packets? compare A B: where do packets part, and why? "
        "test K: Linux's own tests; check TREE --since COMMIT: which of them a change breaks",
        "kernel build --source ~/linux --name mine",
        _kernel_options,
    ),
    Verb(
        "stack",
        "stack:stack",
        "list, build and try out transports in user space (quic-go, quinn, …), which send as flows "
        "beside the kernel's TCP (docs/stacks.md)",
        "stack build quic-go",
        _stack_options,
    ),
    Verb(
        "mininet",
        "programs:mininet",
        "run a Mininet script as it is, in virtual time and without root (docs/mininet.md)",
        "mininet bufferbloat.py --bw 1.5",
        _mininet_options,
    ),
    Verb(
        "exec",
        "execute:execute",
        "run any command as root of a guest, in virtual time: a test suite, ip netns, tc",
        "exec --network net.json -- 'server: iperf3 -s &' 'client@1: iperf3 -c server'",
        _exec_options,
    ),
    Verb(
        "shell",
        "programs:shell",
        "a shell as root of a guest, at this terminal and in real time; piped input: virtual time",
        "shell",
        _shell_options,
    ),
    Verb(
        "grade",
        "grade:grade",
        "run a script with some seeds, and hold numbers of its output and captures to ranges",
        "grade experiments/course/bufferbloat.py --seeds 1,2,3",
        _grade_options,
    ),
    Verb(
        "packetdrill",
        "packetdrill:packetdrill",
        "run packetdrill's scripts in guests, in virtual time and without root; prints KTAP; exit "
        "status 1 if one fails",
        "packetdrill --selftests 6.12 --kernel 6.1,6.12",
        _packetdrill_options,
    ),
    Verb(
        "columns",
        "columns:columns",
        "every column of the tables, with its unit and its definition",
        "columns rtt",
        _columns_options,
    ),
    Verb(
        "clean", "machine:clean", "remove what killed runs left behind, and nothing else", "clean"
    ),
    Verb(
        "completion",
        "completion:complete",
        "print what a shell needs to complete this command line",
        "completion bash >>~/.bash_completion",
        _completion_options,
    ),
)
