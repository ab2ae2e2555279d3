"""How much a query may encode, in an index where documents have no vectors yet. Values alone."""

from __future__ import annotations

from dataclasses import dataclass

CANDIDATES = 20  # best documents by words that are encoded for a query


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much a query may encode."""

    candidates: int = CANDIDATES  # best documents by words that are to have vectors; 0 encodes none
    tokens: int | None = None  # about, at most, but one document at least; no limit by default
