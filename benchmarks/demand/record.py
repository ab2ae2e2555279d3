"""What was measured of encoding on demand: frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from indexer.training.origin import Origin


@dataclass(frozen=True)
class DemandRow:
    """One number of candidates, over all queries one after another."""

    way: str  # "words", "N candidates" or "all"
    candidates: int | None  # None where none were encoded for queries
    metrics: dict[str, float]  # means of the product's rule, in [0, 1]
    other_rules: dict[str, dict[str, float]]  # means by rule, of the same hits in another order
    per_query: list[float]  # nDCG@10 of the product's rule
    tokens: dict[str, int]  # encoded in all, the sample included, after so many queries
    documents: dict[str, int]  # documents that have vectors, after so many queries


@dataclass(frozen=True)
class DemandRecord:
    """Quality and cost by the number of candidates."""

    kind: ClassVar[str] = "demand"

    task: str
    dataset: str  # name@checksum
    encoder: str  # name@fingerprint
    split: str
    n_queries: int
    n_documents: int
    n_tokens: int  # of all documents
    sample_documents: int  # encoded before the first query
    sample_tokens: int
    rows: list[DemandRow]
    seconds: float
    origin: Origin
    is_encoded: bool = False  # candidates of the first queries were encoded; else vectors were looked up

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        first = f"-{self.encoder.partition('@')[0]}-first{self.n_queries}" if self.is_encoded else ""
        return f"demand-{self.task}-{self.split}{first}"
