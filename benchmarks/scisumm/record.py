"""What was measured of summaries as queries, as a record; read by tables, filled by `benchmarks.summaries`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.record_file import name_of
from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class SummaryRecord:
    """How well one system finds what belongs to the summaries of one split."""

    kind: ClassVar[str] = "summaries"

    task: str
    dataset: str  # name@checksum
    split: str
    system: str
    encoder: str  # name@fingerprint; "" where the system has none
    settings: Settings
    is_trained_on_it: bool  # the encoder learned from pairs of this dataset
    is_quick: bool  # on a small part of the dataset
    n_queries: int
    n_candidates: float  # a question, mean
    n_draws: int
    metrics: dict[str, float]  # means over queries, then draws, in [0, 1]; the first is compared
    deviations: dict[str, float]  # standard deviation over draws; {} for one draw
    query_ids: list[str]
    topic_ids: list[str]  # of each query the paper that it sums up: several summaries of one are no independent cases
    per_query: dict[str, list[float]]  # metric to its values, means over draws, in the order of `query_ids`
    search_seconds: float  # all questions, one after the other
    n_tokens: int  # encoded in this run; 0 where the vectors were there
    seconds: float  # to be ready
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        exact = "exact" if self.settings.get("exact") else ""
        given = (self.encoder.partition("@")[0], exact, self.split, "quick" if self.is_quick else "")
        return name_of(self.kind, self.task, self.system, *given, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"queries": self.n_queries, "draws": self.n_draws}
