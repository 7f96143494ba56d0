"""A table as LaTeX has it, and within the width of a terminal."""

from __future__ import annotations

import textwrap

from analysis.statistics.text_tables import NO_VALUE, TextTable
from testbed.errors import printable_lines

PADDING = 2  # between columns on a terminal
LATEX_SIGNS = {  # what TeX would obey, and what its fonts lack
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "→": r"$\to$",
    "…": r"\dots{}",
    "µ": r"\textmu{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
}


def as_latex(table: TextTable) -> str:
    """Return a `tabular` for LaTeX with the package booktabs; the note is a comment above it."""
    columns = "".join("r" if all(map(is_number, cells)) else "l" for _, *cells in table.columns())
    rows = [r"    " + " & ".join(map(_latex_cell, line)) + r" \\" for line in table.rows]
    head = "    " + " & ".join(map(_latex_cell, table.header)) + r" \\"
    note = [f"% {line}" for line in printable_lines(table.note).splitlines()]
    return "\n".join(
        [
            *(note or ["% made by testbed"]),
            r"% \usepackage{booktabs}",
            rf"\begin{{tabular}}{{{columns}}}",
            *(r"    \toprule", head, r"    \midrule", *rows, r"    \bottomrule"),
            r"\end{tabular}",
            "",
        ]
    )


def _latex_cell(text: str) -> str:
    line = printable_lines(text).replace("\n", " ")
    return "".join(LATEX_SIGNS.get(sign, sign) for sign in line)


def narrowed(table: TextTable, width: int) -> TextTable:
    """Return the table without columns of one value if it is wider; the note has what they say."""
    if len(table.rows) < 2 or width_of(table) <= width:
        return table
    same = {
        place: f"{heading} {cells[0]}"
        for place, (heading, *cells) in enumerate(table.columns())
        if len(set(cells)) == 1 and (is_number(cells[0]) or heading == "status")
    }
    if not same:
        return table
    left = [place for place in range(len(table.header)) if place not in same]
    notes = (f"in all rows: {', '.join(same.values())}", table.note)
    return table.of_columns(left, "; ".join(filter(None, notes)))


def width_of(table: TextTable) -> int:
    """Return the characters of a line on the terminal, headings in as many lines as they need."""
    return sum(width + PADDING for width in _widths(table))


def _widths(table: TextTable) -> list[int]:
    return [max(map(len, (*heading.split(), *cells))) for heading, *cells in table.columns()]


def headings(table: TextTable, width: int) -> list[str]:
    """Return the headings, in several lines if the table is wider than the terminal otherwise."""
    if sum(max(map(len, column)) + PADDING for column in table.columns()) <= width:
        return list(table.header)
    narrow = zip(table.header, _widths(table), strict=True)
    return ["\n".join(textwrap.wrap(heading, most)) for heading, most in narrow]


def blocks(table: TextTable, width: int) -> list[TextTable]:
    """Return a table that is too wide as several, each with the columns that tell rows apart."""
    if width_of(table) <= width or not table.rows:
        return [table]
    keys = [*range(next((n for n, cell in enumerate(table.rows[0]) if is_number(cell)), 0))]
    parts = [[*keys]]
    for place in range(len(keys), len(table.header)):
        if parts[-1] != keys and width_of(table.of_columns([*parts[-1], place], "")) > width:
            parts.append([*keys])
        parts[-1].append(place)
    *first, last = parts
    return [*(table.of_columns(part, "") for part in first), table.of_columns(last, table.note)]


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, or the dash that stands for a missing one."""
    return cell[:1] in f"0123456789{NO_VALUE}" or (cell[:1] == "-" and cell[1:2].isdigit())
