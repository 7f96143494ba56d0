"""Answers of the ledger of claims, made up by hand."""

from __future__ import annotations

from typing import Any

from analysis.claims import ledger
from analysis.claims.judgement import ClaimVerdict, NumberRow, TrialEvidence
from analysis.claims.ledger import Varied

__all__ = ["NumberRow", "TrialEvidence", "made_up"]


def made_up(
    id: str, verdict: str, evidence: tuple[TrialEvidence, ...], **more: Any
) -> ledger.Answer:
    """An answer that has something of everything."""
    others = [Varied(f"starts {n} ms later", ClaimVerdict(verdict), verdict) for n in (1, 2)]
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
        "rows": (NumberRow("Vegas", "0.5", "0.392"),),
        "why": "",
        "comparisons": 3,
        "ledger_verdict": ClaimVerdict.SUPPORTED,
        "varied": (*others, Varied("buffers 5 % smaller", ClaimVerdict.OPEN, "open")),
    }
    return ledger.Answer(id=id, verdict=ClaimVerdict(verdict), evidence=evidence, **(usual | more))
