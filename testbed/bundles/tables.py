"""The tables and figures that follow from the trials of a run alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from analysis.figures import static_renderer
from analysis.figures.general import presentation
from analysis.results.experiment_results import collect
from analysis.results.tables import write_links, write_metrics, write_transfers
from testbed.scenario.experiment import Experiment
from testbed.store.names import FIGURES, LINKS_CSV, METRICS_CSV, TRANSFERS_CSV
from testbed.store.reading import readable, trial_paths


def make_tables(run: Path, definitions: Mapping[str, Experiment]) -> Iterator[Path]:
    """Write a run's tables and figures from its trials; yield each file."""
    write_metrics(run)
    yield run / METRICS_CSV
    trials, _ = readable(trial_paths(run))
    if len(write_links(run, trials)):
        yield run / LINKS_CSV
    if len(write_transfers(run, trials)):
        yield run / TRANSFERS_CSV
    for results in collect([run], definitions).experiments:
        for figure in presentation.figures(results):
            yield from static_renderer.save(figure, run / FIGURES)
