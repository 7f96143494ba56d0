"""The report of all experiments, from results made up by hand: its page, and what holds in every
figure of it: ticks, legends, markers, colours, order, words."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Tick
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as DrawnFigure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from analysis.figures import static_renderer
from analysis.figures.figure import Figure
from analysis.figures.style import VARIANT_COLOURS
from analysis.report import collect, make_report
from analysis.report.facts import command, command_note
from experiments.catalogue import EXPERIMENTS
from tests import report_writer
from tests.made_up_answers import TrialEvidence, made_up

WHY = "the rate was 3.1 % below what was asked"
MANY = 6  # entries of a legend, from which on it stands beside the panels
ONE = re.compile(r"(?<![\d.,–-])1 (trials|seeds|flows|packets|points|losses|segments|runs)\b")
SEVERAL = re.compile(r"\b([2-9]|\d\d+) (trial|seed|flow|point|segment|run)\b(?!-)")


# seeds, and how many trials at most; the last two with --all
RESULTS = {
    "router-bottleneck": (2, 99),
    "dumbbell-load": (1, 24),
    "dumbbell-queues": (1, 99),
    "someones-own": (2, 99),
    "router-fairness": (2, 99),
    "dumbbell-pairs": (1, 24),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, with_slow: bool) -> list[Path]:
    """Small results of each experiment, some of the trials doubtful."""
    root = tmp_path_factory.mktemp("results")
    for name, (seeds, most) in [*RESULTS.items()][: None if with_slow else -2]:
        report_writer.write_experiment(root / name, name, seeds, most)
    point, _ = next(report_writer.points("router-bottleneck", 1))
    for seed, settings in enumerate(
        (
            {"verdict": "suspect", "why": WHY},
            {"verdict": "invalid", "why": "a packet is missing"},
            {"status": "unsupported"},
        ),
        start=11,
    ):
        made = report_writer.scenario("router-bottleneck", point, seed)
        report_writer.write(root / "router-bottleneck", made, **settings)
    return sorted(root.iterdir())


@dataclass(frozen=True)
class Picture:
    """A drawn figure, its name and what is said below it."""

    stem: str
    words: tuple[str, ...]
    figure: DrawnFigure


@dataclass(frozen=True)
class Made:
    """The report's page, and the figures as matplotlib drew them for it."""

    page: Path
    pictures: list[Picture]


@pytest.fixture(scope="module")
def made(folders: list[Path], tmp_path_factory: pytest.TempPathFactory, with_slow: bool) -> Made:
    """The report of all of them, with a ledger of two claims; its SVGs are drawn with --all."""
    some = tuple(path.name for path in sorted(folders[0].iterdir())[:3])
    answers = (
        made_up("KS1.1", "supported", (TrialEvidence("dumbbell-load", some, "load"),)),
        made_up("JH1.1", "contradicted", (), paper="JH", why="a queue of ten packets"),
    )
    pictures: list[Picture] = []
    draw = static_renderer.draw

    def noted(figure: Figure) -> DrawnFigure:
        drawn = draw(figure)
        pictures.append(Picture(figure.stem, (figure.caption, figure.reading), drawn))
        return drawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(static_renderer, "draw", noted)
        if not with_slow:
            patch.setattr(static_renderer, "svg_text", lambda _drawn: report_writer.SKETCH_SVG)
        out = tmp_path_factory.mktemp("out") / "report.html"
        return Made(make_report(collect(folders, EXPERIMENTS), out, answers), pictures)


@pytest.fixture(scope="module")
def page(made: Made) -> Path:
    return made.page


@pytest.fixture(scope="module")
def drawn(made: Made) -> list[Picture]:
    """Every figure of every experiment, as matplotlib draws it."""
    files = made.page.with_name("report-figures").glob("*.png")
    assert {each.stem for each in made.pictures} == {path.stem for path in files}
    return made.pictures


@pytest.fixture(scope="module")
def html(page: Path) -> str:
    return page.read_text()


def addresses(html: str) -> list[str]:
    return re.findall(r'\bhref="([^"]*)"', html)


def test_every_link_leads_somewhere(page: Path, html: str) -> None:
    ids = re.findall(r'\bid="([^"]*)"', html)
    assert not [name for name, count in Counter(ids).items() if count > 1]
    inside = {link[1:] for link in addresses(html) if link.startswith("#")}
    assert inside <= set(ids)
    outside = [link for link in addresses(html) if link[0] != "#" and link != "data:,"]
    assert outside
    for link in outside:
        assert (page.parent / unquote(link)).exists(), link


def test_nothing_comes_from_elsewhere(html: str) -> None:
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', html)
    assert "@import" not in html
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?!data:)", html)


def test_every_experiment_has_figures_with_their_files(
    folders: list[Path], page: Path, html: str
) -> None:
    stems = re.findall(r'<figure id="([^"]+)">', html)
    for start in (
        "dumbbell-load-guest-load-ns2",
        "dumbbell-pairs-guest-shares",
        "dumbbell-queues-guest-timeline",
        "dumbbell-queues-guest-queues",
        "router-bottleneck-guest-throughput-of-variants-router",
        "router-bottleneck-guest-throughput-against-delay",
        "router-fairness-guest-time",
        "router-fairness-guest-shares",
        "someones-own-guest-metrics-by",
        "someones-own-guest-throughput-against-delay",
        "someones-own-guest-delay-distribution",
    ):
        is_there = any(start.startswith(folder.name) for folder in folders)
        assert any(stem.startswith(start) for stem in stems) == is_there, start
    folder = page.with_name("report-figures")
    for stem in stems:
        assert (folder / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{stem}.svg").read_text()
        with (folder / f"{stem}.csv").open() as file:
            assert len(list(csv.reader(file))) > 1, stem


def test_figures_have_the_pages_colours_and_no_pictures(html: str) -> None:
    plots = re.findall(r'<svg class="plot".*?</svg>', html, re.S)
    assert all("var(--muted)" in plot for plot in plots)
    assert not any("<image" in plot or "#666666" in plot or "#000000" in plot for plot in plots)


def test_invalid_trials_are_left_out_and_counted(folders: list[Path], html: str) -> None:
    folder = next(path for path in folders if path.name == "router-bottleneck")
    [results] = collect([folder], EXPERIMENTS).experiments
    assert set(results.rows["seed"]) == {1, 2, 11, 12, 13}
    assert set(results.good["seed"]) == {1, 2, 11}
    for badge in ("1 suspect", "1 invalid", "1 unsupported"):
        assert f">{badge}</span>" in html
    assert html.count(WHY) == 2  # with the doubts, and with the trial
    assert "hollow: includes a suspect trial" in html


def test_a_claim_has_its_numbers_and_evidence(html: str) -> None:
    first, second = re.findall(r'<details class="claim".*?</details>', html, re.S)
    assert "KS1.1" in first and "Vegas &lt; the others" in first
    assert "-0.5 … -0.125" in first and "0.392" in first
    assert 'href="#dumbbell-load-guest-load-ns2-' in first
    assert 'data-trials="1-3"' in first
    assert "a queue of ten packets" in second
    assert '<span class="badge contradicted">1 contradicted</span>' in html


def test_the_command_runs_the_same_again(folders: list[Path]) -> None:
    folder = next(path for path in folders if path.name == "dumbbell-load")
    found = collect([folder], EXPERIMENTS).experiments
    results = next(each for each in found if each.engine == "guest")
    assert (command(results), command_note(results)) == (
        "testbed run dumbbell-load --set variant=tahoe --set cbr_mbit=1,2,3 "
        "--set order=cbr-first,tcp-first --set window=large,small --set profile=modern,ns2 "
        "--set duration_s=60 --seeds 1 --engine guest",
        "",
    )


def test_a_trial_in_two_folders_counts_once(folders: list[Path]) -> None:
    found = collect([folders[0], folders[0]])
    once = collect([folders[0]])
    assert len(found.metrics) == len(once.metrics)
    assert len(found.again) == len(list(once.trials))


def every_axes(drawn: list[Picture]) -> Iterator[tuple[str, Axes]]:
    for each in drawn:
        for number, axes in enumerate(each.figure.axes):
            if axes.get_visible() and axes.axison:
                yield f"{each.stem}, panel {number}", axes


def test_no_tick_says_what_another_says(drawn: list[Picture]) -> None:
    for where, axes in every_axes(drawn):
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            seen = [
                tick.get_text()
                for place, tick in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
                if tick.get_text() and low - slack <= place <= high + slack
            ]
            assert len(set(seen)) == len(seen), (where, seen)


def test_loads_are_in_the_order_of_their_numbers(drawn: list[Picture]) -> None:
    seen = 0
    for where, axes in every_axes(drawn):
        texts = [tick.get_text() for tick in axes.get_xticklabels() if tick.get_text()]
        with_numbers = [re.fullmatch(r"−?\d+(\.\d+)?", text) for text in texts]
        if texts and all(with_numbers):
            values = [float(text.replace("−", "-")) for text in texts]
            assert values == sorted(values), where
            seen += len(values) > 2
    assert seen > 10


def test_no_marker_is_cut(drawn: list[Picture]) -> None:
    """A point at the edge of its panel is drawn whole, or the panel has room for it."""
    for where, axes in every_axes(drawn):
        box = axes.get_window_extent()
        for line in axes.get_lines():
            if line.get_marker() in ("", " ", "None", None, "|", "_") or not line.get_clip_on():
                continue
            places = axes.transData.transform(np.column_stack(line.get_data()))
            inside = places[[bool(box.contains(x, y)) for x, y in places]]
            radius = line.get_markersize() / 2 * axes.figure.dpi / 72
            room = np.minimum(inside - (box.x0, box.y0), (box.x1, box.y1) - inside)
            assert not len(inside) or room.min() > 0.5 * radius, (where, line.get_label())


def test_long_legends_stand_beside_the_panels(drawn: list[Picture]) -> None:
    seen = 0
    for each in drawn:
        for legend in [*each.figure.legends, *(a.get_legend() for a in each.figure.axes)]:
            if legend is None or len(legend.get_texts()) < MANY:
                continue
            box = legend.get_window_extent()
            for axes in each.figure.axes:
                panel = axes.get_window_extent()
                over_x = min(box.x1, panel.x1) - max(box.x0, panel.x0)
                over_y = min(box.y1, panel.y1) - max(box.y0, panel.y0)
                assert over_x <= 1 or over_y <= 1, each.stem
            seen += 1
    assert seen


def test_all_words_are_inside_the_figure(drawn: list[Picture]) -> None:
    """But for the ticks', of which matplotlib keeps some beyond the view and does not draw them."""
    for each in drawn:
        whole = each.figure.bbox.padded(2)
        ticks = {label for tick in each.figure.findobj(Tick) for label in tick.findobj(Text)}
        for text in each.figure.findobj(Text):
            if text.get_text().strip() and text.get_visible() and text not in ticks:
                box = text.get_window_extent()
                assert whole.x0 <= box.x0 and box.x1 <= whole.x1, (each.stem, text.get_text())
                assert whole.y0 <= box.y0 and box.y1 <= whole.y1, (each.stem, text.get_text())


def test_a_variant_has_one_colour_everywhere(drawn: list[Picture]) -> None:
    """Every legend's sample of a variant has its colour."""
    seen = set()
    for each in drawn:
        for legend in [*each.figure.legends, *(a.get_legend() for a in each.figure.axes)]:
            for text, sample in zip(
                *((legend.get_texts(), legend.legend_handles) if legend else ((), ())), strict=True
            ):
                if text.get_text() in VARIANT_COLOURS and isinstance(sample, Line2D):
                    wanted = VARIANT_COLOURS[text.get_text()].lower()
                    assert to_hex(sample.get_color()) == wanted, (each.stem, text.get_text())
                    seen.add(text.get_text())
    assert len(seen) > 3


def test_one_is_no_plural(drawn: list[Picture]) -> None:
    for each in drawn:
        said = [*each.words, *(t.get_text() for t in each.figure.findobj(Text))]
        for text in said:
            assert not ONE.search(text), (each.stem, text)
            assert not SEVERAL.search(text), (each.stem, text)
