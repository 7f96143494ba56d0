"""Repeats trials of a bundle, and compares what comes of them with what the bundle has."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from analysis.statistics.packet_comparison import capture_differences, times_and_lengths
from testbed.bundles import machine
from testbed.bundles.manifest import BundledFile
from testbed.bundles.opened import Bundle
from testbed.bundles.tables import make_tables
from testbed.errors import TestbedError, UsageError, number_of
from testbed.guest import kernels
from testbed.guest.boot import require_confined
from testbed.machine.file_hashes import hash_of
from testbed.machine.safe_files import remove_file, remove_folder
from testbed.plan.plan import Task, tasks
from testbed.runs.engine_choice import choose
from testbed.runs.orchestration import RunListener
from testbed.runs.sweep import run_all
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Flow, Scenario
from testbed.store.names import FIGURES, REDUCED, RUN_FILE, RUNS, SAMPLES_FOLDER, VERDICT_FILE
from testbed.store.reading import Trial, readable, trial_paths
from testbed.store.records import CaptureRecord, Status

DEFAULT_TRIALS = 12
NONCE_BYTES = 4
Pair = tuple[Trial, Trial]  # the bundle's, and the one that ran here


@dataclass(frozen=True)
class ComparedKind:
    """How many things of a kind have the same bytes, and sentences on the others."""

    kind: str
    same: int
    total: int
    differences: tuple[str, ...] = ()
    random: int = 0  # captures whose times and lengths are the same, but not what was encrypted

    def __str__(self) -> str:
        """Return the count, as `36 of 36 captures`."""
        return f"{self.same} of {self.total} {self.kind}"


@dataclass(frozen=True)
class Verification:
    """What was repeated and compared."""

    compared: tuple[ComparedKind, ...]
    not_repeated: tuple[str, ...]  # why trials that were chosen are not among them
    machine: tuple[str, ...]  # what differs between the two machines
    not_compared: tuple[str, ...] = ()  # files of figures that need captures of all trials

    @property
    def agrees(self) -> bool:
        """Whether all that was chosen ran again, and has the same bytes."""
        bad = (each.same + each.random < each.total for each in self.compared)
        return not (any(bad) or self.not_repeated) and any(each.total for each in self.compared)


def random_word() -> str:
    """Return a word that nobody knew before."""
    return secrets.token_hex(NONCE_BYTES)


def repeatable(bundle: Bundle) -> list[Trial]:
    """Return the bundle's trials that have the same packets whenever they run."""
    paths = [path for store in bundle.stores for path in trial_paths(store)]
    trials, errors = readable(paths)
    for error in errors[:1]:
        raise error
    return [t for t in trials if t.record.virtual_time and t.record.status is Status.OK]


def chosen(bundle: Bundle, nonce: str, trials: int | None) -> list[Trial]:
    """Return the trials that a word chooses: who made the bundle could not know which."""

    def place(trial: Trial) -> bytes:
        name = trial.path.relative_to(bundle.folder)
        return hashlib.sha256(f"{nonce}\n{bundle.fingerprint}\n{name}".encode()).digest()

    return sorted(repeatable(bundle), key=place)[:trials]


def verify(
    bundle: Bundle,
    trials: Sequence[Trial],
    definitions: Mapping[str, Experiment],
    listener: RunListener,
    jobs: int | None = None,
) -> Verification:
    """Run trials of a bundle again, and make its tables and figures from what they gave."""
    if not trials:
        raise UsageError(f"{bundle.archive}: no trial that can be repeated", "see its bundle.json")
    if any(trial.scenario.runs_programs for trial in trials):
        require_confined()
    not_repeated = list[str]()
    folder = bundle.folder / "again"
    folder.mkdir()
    pairs = [*_repeat(bundle, trials, folder, listener, jobs, not_repeated)]
    of_trials = (_captures(pairs), _samples(pairs))
    differs = tuple(dict.fromkeys(_machines(bundle, pairs)))
    needing = list[str]()
    if not bundle.manifest.has_captures and len(pairs) < len(repeatable(bundle)):
        listener.say("making the tables and figures without captures")
        needing = _need_captures(bundle, definitions, listener.say)
    listener.say("making the tables and figures again")
    of_runs = _made_again(bundle, pairs, definitions, needing, listener.say)
    return Verification((*of_trials, *of_runs), tuple(not_repeated), differs, tuple(needing))


def _repeat(
    bundle: Bundle,
    trials: Sequence[Trial],
    folder: Path,
    listener: RunListener,
    jobs: int | None,
    not_repeated: list[str],
) -> Iterator[Pair]:
    """Run the trials in a folder of ours, and yield those that ran beside the bundle's."""
    ready = list[Trial]()
    for kernel in dict.fromkeys(trial.scenario.kernel for trial in trials):
        of_kernel = [trial for trial in trials if trial.scenario.kernel == kernel]
        if why := _why_no_kernel(kernel, listener.say):
            not_repeated.append(f"{number_of(len(of_kernel), 'trial')}: {why}")
        else:
            ready += of_kernel
    for store in dict.fromkeys(trial.path.parent for trial in ready):
        due = [trial for trial in ready if trial.path.parent == store]
        planned = tasks([with_bundled_files(bundle, trial) for trial in due])
        needs = dict.fromkeys(need for task in planned for need in task.plan.needs)
        choice = choose("guest", needs, planned[0].scenario.kernel)
        with listener.watching(len(planned)) as watch:
            done = run_all(planned, choice, folder / store.name, watch, jobs)
        ended = {each.scenario.name: each for each in done}
        for trial, task in zip(due, planned, strict=True):
            end = ended[task.scenario.name]
            if end.status is Status.OK:
                yield trial, Trial(end.path, task.scenario, end.record)
            else:
                not_repeated.append(f"{trial.path.name}: {end.status}: {end.record.reason}")


def _why_no_kernel(name: str, say: Callable[[str], None]) -> str:
    """Return why a kernel is not to be had here, or nothing; build it if it is one of Debian's."""
    try:
        kernels.build_missing([name], say)
    except TestbedError as error:
        return f"kernel {name}: {error.message}" + (f" ({error.hint})" if error.hint else "")
    return ""


def with_bundled_files(bundle: Bundle, trial: Trial) -> Scenario:
    """Return the trial's scenario with its programs' files from the bundle, and no others."""
    place = str(trial.path.relative_to(bundle.folder))
    files = bundle.manifest.program_files.get(place, {})

    def placed(flow: Flow) -> Flow:
        if flow.command is None:
            return flow
        return dataclasses.replace(flow, command=flow.command.with_files(lambda f: of(flow, f)))

    def of(flow: Flow, file: str) -> str:
        name = files.get(f"{flow.name}/{PurePath(file).name}", "")
        if name not in bundle.manifest.files:
            raise TestbedError(
                f"{bundle.archive}: {place}: {PurePath(file).name} of flow {flow.name} is not in "
                "the bundle",
                "make the bundle again",
            )
        return str(bundle.folder / name)

    flows = tuple(map(placed, trial.scenario.flows))
    return dataclasses.replace(trial.scenario, flows=flows)


def _captures(pairs: Sequence[Pair]) -> ComparedKind:
    same = total = random = 0
    sentences = list[str]()
    for theirs, ours in pairs:
        here = {(each.node, each.interface): each for each in ours.record.captures}
        differing = list[tuple[CaptureRecord, CaptureRecord | None]]()
        for one in theirs.record.captures:
            other = here.get((one.node, one.interface))
            total += 1
            if other and one.sha256 == other.sha256:
                same += 1
            else:
                differing.append((one, other))
        if differing and all(_same_lengths(theirs, ours, *each) for each in differing):
            random += len(differing)
        elif differing:
            told = "; ".join(capture_differences(theirs, ours))
            told = told or "other captures"
            sentences.append(f"{theirs.path.name} (A: the bundle's, B: ours): {told}")
    return ComparedKind("captures", same, total, tuple(sentences), random)


def _same_lengths(
    theirs: Trial, ours: Trial, one: CaptureRecord, other: CaptureRecord | None
) -> bool:
    """Return whether packets have the same times and lengths, as those of another's TLS have."""
    if not (other and one.file and other.file and any(f.video for f in ours.scenario.flows)):
        return False
    sides = times_and_lengths(theirs.path / one.file), times_and_lengths(ours.path / other.file)
    return all(a == b for a, b in itertools.zip_longest(*sides))


def _samples(pairs: Sequence[Pair]) -> ComparedKind:
    same = total = 0
    sentences = list[str]()
    for theirs, ours in pairs:
        for name, listed in theirs.record.files.items():
            if PurePath(name).match(f"{SAMPLES_FOLDER}/*.csv"):
                total += 1
                if ours.record.files.get(name) == listed:
                    same += 1
                else:
                    sentences.append(f"{theirs.path.name}: {name} differs")
    return ComparedKind("tables of samples", same, total, tuple(sentences))


def _machines(bundle: Bundle, pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield what differs between the machine of the bundle and this one."""
    manifest = bundle.manifest
    for name in dict.fromkeys(ours.scenario.kernel for _, ours in pairs):
        here, there = machine.kernel_facts(name), manifest.kernels.get(name)
        if here and there:
            for what, a, b in (
                ("version", there.version, here.version),
                ("image", there.image_sha256, here.image_sha256),
                ("configuration", there.config_sha256, here.config_sha256),
            ):
                if a != b:
                    yield f"kernel {name}: {what}: {a} there, {b} here"
            for source in sorted(there.sources.keys() | here.sources.keys()):
                if there.sources.get(source) != here.sources.get(source):
                    yield f"kernel {name}: another {source}"
        elif here:
            yield f"kernel {name}: the bundle does not say which"
    used = [Task(ours.scenario, task.plan) for _, ours in pairs for task in tasks([ours.scenario])]
    ours_c = machine.programs_in_c(task.plan for task in used)
    code = {k: v for task in used for k, v in machine.code_of(task.scenario, task.plan).items()}
    recorded = {n: text for _, ours in pairs for n, text in ours.record.versions.items()}
    versions = recorded | machine.libraries() | ours_c
    theirs = {name: text for name, text in manifest.versions.items() if name in versions}
    yield from _differing("", theirs, versions)
    yield from _differing("code: ", manifest.code, code)
    yield from _differing("", manifest.machine, machine.this_machine())


def _differing(kind: str, there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    for key in dict.fromkeys([*there, *here]):
        a, b = there.get(key, "unknown"), here.get(key, "unknown")
        if a != b:
            yield f"{kind}{key}: {a} there, {b} here"


def _need_captures(
    bundle: Bundle, definitions: Mapping[str, Experiment], say: Callable[[str], None]
) -> list[str]:
    """Return the files of figures that are others where the captures are left out."""
    made, listed = _made(bundle, definitions, say), bundle.manifest.files
    names = (*bundle.manifest.tables, *bundle.manifest.figures)
    drawn = (name for name in names if PurePath(name).parent.name == FIGURES)
    return [name for name in drawn if made.get(name) != listed.get(name)]


def _made(
    bundle: Bundle, definitions: Mapping[str, Experiment], say: Callable[[str], None]
) -> dict[str, BundledFile]:
    """Make all tables and figures of a bundle's runs from its trials as they are now."""
    made = dict[str, BundledFile]()
    for store in bundle.stores:
        for run in sorted((store / RUNS).glob(f"*/{RUN_FILE}")):
            say(f"    of {store.name}")
            for path in make_tables(run.parent, definitions):
                name = str(path.relative_to(bundle.folder))
                made[name] = BundledFile(path.stat().st_size, hash_of(path))
    return made


def _made_again(
    bundle: Bundle,
    pairs: Sequence[Pair],
    definitions: Mapping[str, Experiment],
    needing_captures: Sequence[str],
    say: Callable[[str], None],
) -> tuple[ComparedKind, ComparedKind]:
    """Put what ran here into the place of the bundle's, and make all tables and figures again."""
    for theirs, ours in pairs:
        remove_folder(theirs.path)
        ours.path.rename(theirs.path)
    if bundle.manifest.has_captures:  # numbers of the others, too, are to follow from packets
        again = {theirs.path for theirs, _ in pairs}
        for path in (p for store in bundle.stores for p in trial_paths(store) if p not in again):
            for name in (VERDICT_FILE, REDUCED):
                if (path / name).exists():
                    remove_file(path / name)
    made, manifest = _made(bundle, definitions, say), bundle.manifest
    tables, figures = (
        [name for name in names if name not in needing_captures]
        for names in (manifest.tables, manifest.figures)
    )
    return (
        _compare_files("tables", tables, manifest.files, made),
        _compare_files("figures", figures, manifest.files, made),
    )


def _compare_files(
    kind: str,
    names: Sequence[str],
    listed: Mapping[str, BundledFile],
    made: Mapping[str, BundledFile],
) -> ComparedKind:
    differing = [name for name in names if name not in made or made[name] != listed.get(name)]
    sentences = tuple(f"{name} differs" for name in differing)
    return ComparedKind(kind, len(names) - len(differing), len(names), sentences)
