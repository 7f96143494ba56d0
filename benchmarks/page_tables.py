"""The tables that a benchmark writes into a page of docs/, between two marks."""

from __future__ import annotations

TABLES_END = "<!-- end -->"


def with_tables(page: str, benchmark: str, tables: str) -> str:
    """Return the page with these tables in place of the benchmark's last ones."""
    before, begin, rest = page.partition(f"<!-- tables: {benchmark} -->\n")
    _, end, after = rest.partition(TABLES_END)
    return f"{before}{begin}\n{tables}\n\n{end}{after}"
