"""Tables for LaTeX, and within the width of a terminal."""

from __future__ import annotations

from analysis.statistics.text_tables import TextTable, as_latex, blocks, narrowed, width_of

TABLE = TextTable(
    ("queue", "goodput Mbit/s", "retrans.", "status"),
    (("codel", "1.0 ± 0.1", "0", "ok"), ("red_a", "2.0 ± 0.1", "0", "ok")),
    "a note",
)


def test_columns_of_one_value_go_into_the_note() -> None:
    assert narrowed(TABLE, 200) is TABLE
    found = narrowed(TABLE, 20)
    assert found.header == ("queue", "goodput Mbit/s")
    assert found.note == "in all rows: retrans. 0, status ok; a note"


def test_a_table_that_is_too_wide_comes_in_parts_with_its_keys() -> None:
    parts = blocks(TABLE, 20)
    assert [part.header[0] for part in parts] == ["queue"] * len(parts)
    assert [head for part in parts for head in part.header[1:]] == list(TABLE.header[1:])
    assert all(width_of(part) <= 20 for part in parts)
    assert [part.note for part in parts] == [""] * (len(parts) - 1) + ["a note"]


def test_latex_obeys_nothing_of_a_cell() -> None:
    lines = as_latex(TABLE).splitlines()
    assert lines[0] == "% a note"
    assert r"\begin{tabular}{lrrl}" in lines
    assert r"    red\_a & 2.0 $\pm$ 0.1 & 0 & ok \\" in lines
