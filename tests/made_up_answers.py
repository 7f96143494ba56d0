"""Answers of the ledger of claims, made up by hand."""

from __future__ import annotations

from typing import Any

from analysis.claims.engine import answers
from analysis.claims.engine.answers import Evidence, Row, Varied, Verdict

__all__ = ["Evidence", "Row", "made_up"]


def made_up(id: str, verdict: str, evidence: tuple[Evidence, ...], **more: Any) -> answers.Answer:
    """An answer that has something of everything."""
    others = [Varied(f"starts {n} ms later", Verdict(verdict)) for n in (1, 2)]
    usual: dict[str, Any] = {
        "paper": "KS",
        "authors": "Kapre, Saxena",
        "claim": "Vegas < the others",
        "tested": "means",
        "statement": "it is",
        "test": "Welch",
        "effect": "-0.25",
        "interval": "-0.5 … -0.125",
        "n": 5,
        "profile": "ns2",
        "setting": "",
        "reading": "",
        "rows": (Row("Vegas", "0.5", "0.392"),),
        "why": "",
        "comparisons": 3,
        "ledger_verdict": Verdict.SUPPORTED,
        "varied": (*others, Varied("buffers 5 % smaller", Verdict.OPEN)),
    }
    return answers.Answer(id=id, verdict=Verdict(verdict), evidence=evidence, **(usual | more))
