"""Makes a bundle of results folders: one archive with all that a stranger needs to repeat them."""

from __future__ import annotations

import dataclasses
import hashlib
import time
import zipfile
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.claims.ledger import Answer, answers_of, ledger_json
from analysis.report import make_report
from analysis.results.experiment_results import ResultSet, collect
from testbed.bundles import descriptions, machine
from testbed.bundles.manifest import (
    BUNDLE_APPENDIX,
    BUNDLE_CITATION,
    BUNDLE_CRATE,
    BUNDLE_MANIFEST,
    BUNDLE_PAGE,
    BUNDLED_PIECE_BYTES,
    BUNDLED_RESULTS,
    CLAIMS,
    PROGRAM_FILES,
    BundledFile,
    BundleManifest,
    fingerprint,
)
from testbed.bundles.tables import make_tables
from testbed.errors import TestbedError, number_of
from testbed.guest import kernels
from testbed.machine.atomic import replace, workplace
from testbed.machine.file_hashes import hash_of
from testbed.plan.plan import make_plan
from testbed.runs.engine_choice import ENGINES
from testbed.runs.identity import identify
from testbed.runs.provenance import versions_of
from testbed.runs.results_folders import StoredRun, find_run, runs_in
from testbed.scenario.experiment import Experiment
from testbed.store.names import (
    CAPTURES_FOLDER,
    FIGURES,
    LINKS_CSV,
    METRICS_CSV,
    RECORD,
    REDUCED,
    REPORT,
    RUN_FILE,
    TRANSFERS_CSV,
    VERDICT_FILE,
    is_file_name,
)
from testbed.store.reading import Trial, no_trials, open_trial, trial_paths
from testbed.store.records import Status

GUEST_ENGINE = "guest"
FIGURE_SUFFIXES = (".png", ".svg", ".csv")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of each file in the archive
NEEDS_64_BITS = 1 << 31
Say = Callable[[str], None]


@dataclass(frozen=True)
class About:
    """What the author says of a bundle."""

    title: str = ""
    authors: tuple[str, ...] = ()
    licence: str = "CC-BY-4.0"
    captures: str = "keep"


@dataclass(frozen=True)
class ResultsStore:
    """A results folder with the trials and runs that go into a bundle."""

    path: Path
    name: str  # in the bundle
    trials: tuple[Trial, ...]
    runs: tuple[StoredRun, ...]


@dataclass(frozen=True)
class MadeBundle:
    """What went into a bundle."""

    manifest: BundleManifest
    fingerprint: str
    trials: int
    captures: int
    warnings: tuple[str, ...]


def make_bundle(
    folders: Sequence[Path],
    out: Path,
    title_page: About,
    definitions: Mapping[str, Experiment],
    say: Say = lambda _line: None,
) -> MadeBundle:
    """Write a bundle of results folders or runs."""
    stores = [*_stores(folders)]
    trials = [trial for store in stores for trial in store.trials]
    tables = list[str]()
    for store in stores:
        for run in store.runs:
            say(f"tables and figures of {run.path}")
            for path in make_tables(run.path, definitions):
                tables.append(f"{_place(store, run)}/{path.relative_to(run.path)}")
    results = collect([run.path for s in stores for run in s.runs] or folders, definitions)
    answers = answers_of(results) if any(e.definition for e in results.experiments) else ()
    writer = _Writer(title_page)
    with workplace("bundle") as folder:
        page = make_report(results, folder / REPORT, answers, single=True)

        def write(path: Path) -> None:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                writer.archive = archive
                writer.add_file(REPORT, page)
                if answers:
                    writer.add_text(CLAIMS, ledger_json(answers))
                for store in stores:
                    _add_store(writer, store, say)
                manifest = _manifest(writer, stores, title_page, tables)
                _add_descriptions(writer, manifest, stores, results, answers)
                writer.finish(manifest)

        replace(out, write)
    captures = sum(len(trial.record.captures) for trial in trials)
    manifest = writer.manifest
    assert manifest is not None
    print_of = fingerprint(manifest.to_json().encode())
    warnings = (*_warnings(trials, manifest.kernels),)
    return MadeBundle(manifest, print_of, len(trials), captures, warnings)


def _stores(folders: Sequence[Path]) -> Iterator[ResultsStore]:
    """Yield the results folders that hold what was named, each once."""
    named: dict[Path, list[StoredRun] | None] = {}  # None: all of it
    for folder in folders:
        if (folder / RUN_FILE).is_file():
            run = find_run(str(folder), folder)
            if (runs := named.setdefault(run.store, [])) is not None:
                runs.append(run)
        else:
            named[folder.resolve()] = None
    names = set[str]()
    for path, runs in named.items():
        chosen = runs_in(path) if runs is None else runs
        paths = trial_paths(path) if runs is None else []
        paths += [each for run in runs or () for each in run.existing_trials()]
        trials = tuple(open_trial(each) for each in dict.fromkeys(paths))
        if not trials:
            raise no_trials(path)
        name = path.name if is_file_name(path.name) else "folder"
        while name in names:
            name += "-again"
        names.add(name)
        yield ResultsStore(path, name, trials, tuple({run.path: run for run in chosen}.values()))


def _place(store: ResultsStore, run: StoredRun | Trial) -> str:
    """Return where a run or a trial of a results folder is in the bundle."""
    return f"{BUNDLED_RESULTS}/{store.name}/{run.path.relative_to(store.path)}"


class _Writer:
    """Writes files into the archive, and remembers their hashes."""

    archive: zipfile.ZipFile

    def __init__(self, title_page: About) -> None:
        self.keeps_captures = title_page.captures == "keep"
        self.files: dict[str, BundledFile] = {}
        self.program_files: dict[str, dict[str, str]] = {}
        self.manifest: BundleManifest | None = None

    def add_file(self, name: str, path: Path) -> BundledFile:
        """Add a file, piece by piece."""
        if not is_file_name(name):
            raise TestbedError(f"{path}: no name for a file of a bundle", "rename it")
        digest, size, info = hashlib.sha256(), 0, _entry(name)
        many = path.stat().st_size >= NEEDS_64_BITS
        with path.open("rb") as file, self.archive.open(info, "w", force_zip64=many) as entry:
            while piece := file.read(BUNDLED_PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
                entry.write(piece)
        self.files[name] = BundledFile(size, digest.hexdigest())
        return self.files[name]

    def add_text(self, name: str, text: str) -> None:
        """Add a text."""
        content = text.encode()
        self.archive.writestr(_entry(name), content)
        self.files[name] = BundledFile(len(content), hashlib.sha256(content).hexdigest())

    def finish(self, manifest: BundleManifest) -> None:
        """Add the manifest, which has the hashes of all others."""
        self.manifest = dataclasses.replace(manifest, files=dict(sorted(self.files.items())))
        self.archive.writestr(_entry(BUNDLE_MANIFEST), self.manifest.to_json().encode())


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o100644 << 16
    return info


def _add_store(writer: _Writer, store: ResultsStore, say: Say) -> None:
    shown_at = time.monotonic()
    for number, trial in enumerate(store.trials):
        if time.monotonic() - shown_at > 2:
            say(f"{store.name}: {number} of {len(store.trials)} trials")
            shown_at = time.monotonic()
        _add_trial(writer, trial, _place(store, trial))
    for run in store.runs:
        names = [RUN_FILE, METRICS_CSV, LINKS_CSV, TRANSFERS_CSV]
        figures = run.path / FIGURES
        drawn = sorted(figures.iterdir()) if figures.is_dir() else []
        names += [f"{FIGURES}/{each.name}" for each in drawn if each.suffix in FIGURE_SUFFIXES]
        for name in names:
            if (run.path / name).is_file():
                writer.add_file(f"{_place(store, run)}/{name}", run.path / name)


def _add_trial(writer: _Writer, trial: Trial, place: str) -> None:
    record = trial.record
    captures = {each.file for each in record.captures}
    for name, recorded in record.files.items():
        if name.startswith(f"{CAPTURES_FOLDER}/") and (
            name not in captures or not writer.keeps_captures
        ):  # it was compressed or dropped, or is left out
            continue
        if fault := trial.file_fault(name):
            raise TestbedError(f"{trial.path / name}: {fault}", "run it again, or leave it out")
        if writer.add_file(f"{place}/{name}", trial.path / name).sha256 != recorded.sha256:
            raise TestbedError(f"{trial.path / name}: changed meanwhile", "try again")
    for name in (VERDICT_FILE, REDUCED):
        if (trial.path / name).is_file():
            writer.add_file(f"{place}/{name}", trial.path / name)
    if not writer.keeps_captures:
        gone = tuple(dataclasses.replace(each, file="") for each in record.captures)
        record = dataclasses.replace(record, captures=gone)
    writer.add_text(f"{place}/{RECORD}", record.to_json())
    if named := dict(_program_files(writer, trial)):
        writer.program_files[place] = named


def _program_files(writer: _Writer, trial: Trial) -> Iterator[tuple[str, str]]:
    """Add the files of the trial's command flows; yield flow/name and where each is."""
    for flow in trial.scenario.flows:
        for file in flow.command.files if flow.command else ():
            path = Path(file)
            if not path.is_file():
                raise TestbedError(
                    f"{trial.path}: flow {flow.name}: {path}: no such file",
                    "put it back: without it nobody can repeat the trial",
                )
            place = f"{PROGRAM_FILES}/{hash_of(path)[:16]}/{path.name}"
            if place not in writer.files:
                writer.add_file(place, path)
            yield f"{flow.name}/{path.name}", place


def _manifest(
    writer: _Writer, stores: Sequence[ResultsStore], title_page: About, tables: Sequence[str]
) -> BundleManifest:
    trials = [trial for store in stores for trial in store.trials]
    experiments = dict.fromkeys(trial.scenario.experiment for trial in trials)
    names = dict.fromkeys(t.scenario.kernel for t in trials if t.record.virtual_time)
    facts = {name: machine.kernel_facts(name) for name in names}
    plans = {t.path: make_plan(t.scenario) for t in trials if t.record.status is Status.OK}
    code = dict[str, str]()
    for trial in trials:
        if trial.path in plans:
            code |= machine.code_of(trial.scenario, plans[trial.path])
    recorded = {name: text for t in trials for name, text in t.record.versions.items()}
    return BundleManifest(
        title=title_page.title or f"Results of {', '.join(experiments)}",
        authors=title_page.authors,
        licence=title_page.licence,
        testbed=versions_of(("tcp-testbed",))["tcp-testbed"],
        code=code,
        made_s=time.time(),
        has_captures=writer.keeps_captures,
        machine=machine.this_machine(),
        kernels={name: each for name, each in facts.items() if each},
        versions=recorded | machine.libraries() | machine.programs_in_c(plans.values()),
        commands=tuple(run.command for store in stores for run in store.runs),
        program_files=writer.program_files,
        tables=tuple(each for each in tables if each.endswith(".csv")),
        figures=tuple(each for each in tables if not each.endswith(".csv")),
        files={},
    )


def _add_descriptions(
    writer: _Writer,
    manifest: BundleManifest,
    stores: Sequence[ResultsStore],
    results: ResultSet,
    answers: Sequence[Answer],
) -> None:
    """Add what tells people and their programs what is in the bundle."""
    told = descriptions.Told(
        manifest,
        {_place(store, trial): trial for store in stores for trial in store.trials},
        {_place(store, run): run for store in stores for run in store.runs},
        answers,
        {each.experiment: each.definition for each in results.experiments if each.definition},
        writer.files,
    )
    writer.add_text(BUNDLE_CITATION, descriptions.citation(told))
    writer.add_text(BUNDLE_APPENDIX, descriptions.appendix(told))
    writer.add_text(BUNDLE_PAGE, descriptions.page(told))
    writer.add_text(BUNDLE_CRATE, descriptions.crate(told))


def _warnings(trials: Sequence[Trial], built: Container[str]) -> Iterator[str]:
    """Yield what keeps a reader from repeating trials."""
    real = [t for t in trials if not t.record.virtual_time]
    failed = [t for t in trials if t.record.status is not Status.OK]
    here = [t for t in trials if t not in (*real, *failed) and t.scenario.kernel in built]
    if other := [t for t in here if not _is_of_this_version(t)]:
        yield (
            f"{number_of(len(other), 'trial')} ran with another version of the testbed, whose "
            "packets may differ from those that a reader gets: run them again"
        )
    if real:
        yield f"{number_of(len(real), 'trial')} ran in real time: nobody can repeat the packets"
    if failed:
        yield f"{number_of(len(failed), 'trial')} did not end well, and will not be repeated"
    own_kernels = {t.scenario.kernel for t in trials if t.record.virtual_time} - {
        *kernels.debian_names()
    }
    for name in sorted(own_kernels):
        yield (
            f"kernel {name} is one of your own: a reader has to build it from your source "
            f"(testbed kernel build --source DIR --name {name}), which is not in the bundle"
        )


def _is_of_this_version(trial: Trial) -> bool:
    """Return whether the trial would not run again here, as it is what would come of it."""
    engine = ENGINES[GUEST_ENGINE]().with_kernel(trial.scenario.kernel)
    return identify(trial.scenario, make_plan(trial.scenario), engine) == trial.record.identity
