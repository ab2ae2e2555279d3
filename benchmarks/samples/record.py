"""What was measured of the size of the reference: frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from indexer.training.origin import Origin


@dataclass(frozen=True)
class SampleRow:
    """One size of the sample and one m, for the queries of one corpus."""

    corpus: str
    is_mixed: bool  # searched in all corpora at once, with one reference drawn from all
    n_sample: int  # documents of the reference
    exceeding: int  # m
    per_query: list[float]  # nDCG@10


@dataclass(frozen=True)
class SampleRecord:
    """Quality by the size of the reference."""

    kind: ClassVar[str] = "samples"

    datasets: list[str]  # name@checksum
    encoder: str  # name@fingerprint
    split: str
    n_documents: int  # of all corpora
    rows: list[SampleRow]
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        names = "-".join(dataset.partition("@")[0] for dataset in self.datasets)
        return f"samples-{names}-{self.split}"
