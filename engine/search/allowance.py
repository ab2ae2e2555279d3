"""The limits of encoding for a query, in an index where documents have no vectors yet. Values only."""

from __future__ import annotations

from dataclasses import dataclass

CANDIDATES = 20  # best documents by words that are encoded for a query


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of encoding for a query."""

    candidates: int = CANDIDATES  # best documents by words that are encoded if they have no vectors; 0 encodes none
    tokens: int | None = None  # approximate limit, but at least one document is encoded; no limit by default
