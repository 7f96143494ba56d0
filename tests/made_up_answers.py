"""Answers of the ledger of claims, made up by hand: the least that the report asks of one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    what: str
    ours: float
    paper: float | None
    ns2: float | None = None


@dataclass(frozen=True)
class Evidence:
    experiment: str
    trials: tuple[str, ...]
    figure: str


@dataclass(frozen=True)
class Answer:
    id: str
    verdict: str
    evidence: tuple[Evidence, ...]
    paper: str = "KS"
    authors: str = "Kapre, Saxena"
    claim: str = "Vegas < the others"
    tested: str = "means"
    statement: str = "it is"
    test: str = "Welch"
    effect: float = -0.25
    interval: tuple[float, float] = (-0.5, -0.125)
    n: int = 5
    profile: str = "ns2"
    setting: str = ""
    reading: str = ""
    rows: tuple[Row, ...] = (Row("Vegas", 0.5, 0.392),)
    why: str = ""
    comparisons: int = 3
    ledger_verdict: str = "supported"
    survival: str = "in 3 of 4 readings; open with buffers 5 % smaller"
