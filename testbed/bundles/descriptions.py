"""What tells of a bundle: a page, a citation, a paper's appendix, and an RO-Crate for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import jinja2

from analysis.claims.ledger import Answer
from analysis.statistics.text_tables import latex_text
from testbed.bundles.manifest import (
    BUNDLE_APPENDIX,
    BUNDLE_CITATION,
    BUNDLE_CRATE,
    BUNDLE_MANIFEST,
    BUNDLE_PAGE,
    CLAIMS,
    BundledFile,
    BundleManifest,
)
from testbed.runs.results_folders import StoredRun
from testbed.scenario.experiment import Experiment
from testbed.store.names import REPORT, SCENARIO
from testbed.store.reading import Trial

BUNDLE_TEMPLATES = Path(__file__).with_name("templates")
CRATE_SPECIFICATION = "https://w3id.org/ro/crate/1.3"
CRATE_PROFILE = "https://w3id.org/ro/wfrun/process/0.6"
ANONYMOUS = "Anonymous"
HOMES = {  # of programs and libraries
    "iperf3": "https://software.es.net/iperf/",
    "iproute2": "https://wiki.linuxfoundation.org/networking/iproute2",
    "matplotlib": "https://matplotlib.org/",
    "nginx": "https://nginx.org/",
    "numpy": "https://numpy.org/",
    "pandas": "https://pandas.pydata.org/",
    "pyarrow": "https://arrow.apache.org/",
    "python": "https://www.python.org/",
}
KERNEL_HOME = "https://www.kernel.org/"
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tex": "text/x-tex",
}


@dataclass(frozen=True)
class Told:
    """All that a bundle's descriptions say; trials and runs are by their places in the bundle."""

    manifest: BundleManifest  # without its files
    trials: Mapping[str, Trial]
    runs: Mapping[str, StoredRun]
    answers: Sequence[Answer]
    experiments: Mapping[str, Experiment]
    files: Mapping[str, BundledFile]

    @property
    def authors(self) -> tuple[str, ...]:
        """The authors' names."""
        return self.manifest.authors or (ANONYMOUS,)

    @property
    def measured(self) -> list[Answer]:
        """The answers for which there were numbers."""
        return [each for each in self.answers if each.is_measured]

    @property
    def made(self) -> datetime:
        """When the bundle was made."""
        return datetime.fromtimestamp(self.manifest.made_s, UTC)

    @property
    def wall_s(self) -> float:
        """How long all trials took, one after the other."""
        return sum(trial.record.wall_s for trial in self.trials.values())

    @property
    def memory_mb(self) -> float:
        """The most memory that one trial took."""
        return max(trial.record.peak_memory_mb for trial in self.trials.values())

    @property
    def size_mb(self) -> float:
        """What all files take, unpacked."""
        return sum(each.bytes for each in self.files.values()) / 1e6

    def of_experiment(self) -> Iterator[tuple[str, str, list[Trial]]]:
        """Yield each experiment's name, what it is about, and its trials."""
        by_name: dict[str, list[Trial]] = {}
        for trial in self.trials.values():
            by_name.setdefault(trial.scenario.experiment, []).append(trial)
        for name, trials in by_name.items():
            purpose = self.experiments[name].about if name in self.experiments else ""
            yield name, purpose, trials


def page(told: Told) -> str:
    """Return the page for people."""
    return _filled("page.html", told, autoescape=True, report=REPORT, claims=CLAIMS)


def appendix(told: Told) -> str:
    """Return the artifact appendix of a paper, in LaTeX."""
    return _filled("appendix.tex", told, autoescape=False)


def _filled(template: str, told: Told, *, autoescape: bool, **more: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(BUNDLE_TEMPLATES),
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        comment_start_string="<#",
        comment_end_string="#>",
    )
    environment.filters["tex"] = latex_text
    return environment.get_template(template).render(told=told, manifest=told.manifest, **more)


def citation(told: Told) -> str:
    """Return the file by which the bundle is cited (CFF 1.2.0), whose values are JSON's texts."""
    lines = ["cff-version: 1.2.0", f"title: {_text(told.manifest.title)}", "type: dataset"]
    lines += [f"message: {_text('If you use these results, please cite them as below.')}"]
    lines += ["authors:", *(f"  - name: {_text(name)}" for name in told.authors)]
    lines += [f"date-released: {told.made:%Y-%m-%d}", f"license: {_text(told.manifest.licence)}"]
    return "\n".join([*lines, ""])


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def crate(told: Told) -> str:
    """Return the description of the bundle as an RO-Crate (1.3, Process Run Crate 0.6)."""
    graph = [*_root(told), *_people(told), *_software(told), *_actions(told), *_parts(told)]
    return (
        json.dumps(
            {"@context": f"{CRATE_SPECIFICATION}/context", "@graph": graph},
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


Entity = dict[str, Any]


def _refer(*places: str) -> Any:
    references = [{"@id": place} for place in places]
    return references[0] if len(references) == 1 else references


def _root(told: Told) -> Iterator[Entity]:
    manifest = told.manifest
    yield {
        "@id": BUNDLE_CRATE,
        "@type": "CreativeWork",
        "conformsTo": _refer(CRATE_SPECIFICATION),
        "about": _refer("./"),
    }
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": manifest.title,
        "description": f"{len(told.trials)} trials of TCP on real Linux kernels in virtual time: "
        "scenarios, packets' hashes, numbers and figures. `testbed verify` runs them again.",
        "datePublished": told.made.isoformat(timespec="seconds"),
        "license": _refer(_licence(manifest.licence)),
        "author": _refer(*map(_person, told.authors)),
        "conformsTo": _refer(CRATE_PROFILE),
        "hasPart": [{"@id": each["@id"]} for each in _parts(told)],
        "mentions": _refer(*(each["@id"] for each in _actions(told))),
    }
    kind = ["CreativeWork", "Profile"]
    yield {"@id": CRATE_PROFILE, "@type": kind, "name": "Process Run Crate", "version": "0.6"}
    yield {
        "@id": _licence(manifest.licence),
        "@type": "CreativeWork",
        "name": manifest.licence,
        "description": f"the licence of the results: {manifest.licence}",
    }
    yield {
        "@id": BUNDLE_PAGE,
        "@type": "CreativeWork",
        "name": "The bundle for people",
        "about": _refer("./"),
        "encodingFormat": "text/html",
    }


def _licence(name: str) -> str:
    return f"https://spdx.org/licenses/{quote(name)}"


def _person(name: str) -> str:
    return f"#author-{quote(name)}"


def _people(told: Told) -> Iterator[Entity]:
    for name in told.authors:
        yield {"@id": _person(name), "@type": "Person", "name": name}


TESTBED = "#testbed"


def _software(told: Told) -> Iterator[Entity]:
    manifest = told.manifest
    used = [(f"Linux {name}", KERNEL_HOME, k.version) for name, k in manifest.kernels.items()]
    used += [(n, HOMES[n], text) for n, text in manifest.versions.items() if n in HOMES]
    places = [f"{home}#{quote(version, '')}" for _, home, version in used]
    yield {
        "@id": TESTBED,
        "@type": "SoftwareApplication",
        "name": "The TCP testbed",
        "url": BUNDLE_PAGE,
        "version": manifest.testbed,
        "softwareRequirements": [{"@id": place} for place in places],
    }
    for place, (name, home, version) in zip(places, used, strict=True):
        kind = "SoftwareApplication"
        yield {"@id": place, "@type": kind, "name": name, "url": home, "version": version}


def _actions(told: Told) -> Iterator[Entity]:
    """Yield each command that made results."""
    for place, run in told.runs.items():
        above = place.rsplit("/", 2)[0]
        trials = [f"{above}/{name}" for name in run.trials if f"{above}/{name}" in told.trials]
        results = [f"{each}/" for each in (place, *trials)]
        scenarios = [f"{each}/{SCENARIO}" for each in trials]
        yield {
            "@id": f"#run-{quote(place, '')}",
            "@type": "CreateAction",
            "name": f"{len(trials)} trials",
            "description": run.command,
            "endTime": datetime.fromtimestamp(run.ended_s, UTC).isoformat(timespec="seconds"),
            "instrument": _refer(TESTBED),
            "agent": _refer(*map(_person, told.authors)),
            "object": [{"@id": each} for each in scenarios],
            "result": [{"@id": each} for each in results],
        }


def _parts(told: Told) -> Iterator[Entity]:
    """Yield the folders of runs and trials, the scenarios, the tables, the figures and the rest."""
    for place, run in told.runs.items():
        yield {
            "@id": f"{place}/",
            "@type": "Dataset",
            "name": f"tables and figures of the run {run.name}",
            "description": run.command,
            "hasPart": [{"@id": quote(n)} for n in told.files if n.startswith(f"{place}/")],
        }
    for place, trial in told.trials.items():
        yield {
            "@id": f"{place}/",
            "@type": "Dataset",
            "name": f"a trial of {trial.scenario.experiment}, seed {trial.scenario.seed}",
            "description": ", ".join(f"{k}: {v}" for k, v in trial.scenario.axes.items())
            or trial.scenario.name,
            "hasPart": _refer(f"{place}/{SCENARIO}"),
        }
    yield {
        "@id": BUNDLE_MANIFEST,
        "@type": "File",
        "name": "the hashes of all files",
        "description": "what is in the bundle, and what made it",
        "encodingFormat": "application/json",
    }
    inside = tuple(f"{place}/" for place in told.trials)
    for name, each in told.files.items():
        of_trial = name.startswith(inside) and not name.endswith(SCENARIO)
        if of_trial or name in (BUNDLE_CRATE, BUNDLE_PAGE):
            continue
        media = {BUNDLE_CITATION: "text/yaml", BUNDLE_APPENDIX: "text/x-tex"}.get(name)
        suffix = PurePosixPath(name).suffix
        yield {
            "@id": quote(name),
            "@type": "File",
            "name": name,
            "description": f"{each.bytes} bytes of the bundle: {PurePosixPath(name).name}",
            "contentSize": str(each.bytes),
            "sha256": each.sha256,
            "encodingFormat": media or MEDIA_TYPES.get(suffix, "application/octet-stream"),
        }
