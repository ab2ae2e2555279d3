"""What the section-level programs record: frozen values, one JSON file a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.record_file import name_of
from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class FacetsRecord:
    """How well the parts of a score rank the candidates of a faceted query."""

    kind: ClassVar[str] = "facets"

    datasets: dict[str, str]  # name@checksum of each facet's files
    encoder: str  # name@fingerprint
    settings: Settings
    is_quick: bool  # a part of queries and candidates only
    n_documents: int
    query_ids: dict[str, list[str]]  # by facet
    folds: dict[str, list[int]]  # by facet: of which test fold each query is, 1 or 2
    per_query: dict[str, dict[str, dict[str, list[float]]]]  # metric, facet, ranking, in the order of `query_ids`
    zero_shares: dict[str, dict[str, float]]  # facet, ranking: mean share of candidates with score 0
    largest_pair: dict[str, dict[str, list[float | None]]]  # facet, kind of hit: share starting in the facet's section
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        corpus = next(iter(self.datasets.values())).partition("@")[0]
        return _name(self.kind, corpus, self.encoder, is_quick=self.is_quick, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"queries": sum(map(len, self.query_ids.values())), "measures": len(self.per_query)}


@dataclass(frozen=True)
class Arm:
    """One order of removal on one side of the hits, judged in one way."""

    method: str  # stored or re-encoded
    side: str  # query or target
    order: str  # breakdown, cosine or random
    query_ids: list[str]
    curves: dict[str, list[float]]  # means over queries, at `FaithfulnessRecord.shares`
    per_query: dict[str, list[float]]  # areas, comprehensiveness, sufficiency; in the order of `query_ids`


@dataclass(frozen=True)
class FaithfulnessRecord:
    """What becomes of score and rank as parts of a query or a target are removed or put in."""

    kind: ClassVar[str] = "faithfulness"

    task: str
    dataset: str  # name@checksum
    split: str  # whose queries are drawn; "" for those of the part of a quick run
    encoder: str  # name@fingerprint
    settings: Settings
    is_quick: bool
    n_documents: int
    n_hits: int  # all queries together; those of one part cannot be followed on that side
    shares: dict[str, list[float]]  # by method: of tokens removed or put in, from 0 to 1
    arms: list[Arm]
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        given = (self.split, str(self.settings["unit"]))
        return _name(self.kind, self.task, self.encoder, *given, is_quick=self.is_quick, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"hits": self.n_hits}


@dataclass(frozen=True)
class PlantedRecord:
    """Whether hosts of planted passages are found by the documents these are of, and the passages named."""

    kind: ClassVar[str] = "planted"

    task: str
    dataset: str  # name@checksum
    encoder: str  # name@fingerprint
    settings: Settings
    is_quick: bool
    n_documents: int
    n_pairs: int
    mean_shared_words: float  # rare words that host and query share
    host_words: dict[str, list[int]]  # words of the shortest and of the longest host of a class
    plantings: dict[str, list[str | int | float]]  # one entry a planting in each column
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        given = (str(self.settings["form"]), f"{self.n_documents}documents")
        return _name(self.kind, self.task, self.encoder, *given, is_quick=self.is_quick, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"pairs": self.n_pairs}


def _name(kind: str, task: str, encoder: str, *given: str, is_quick: bool, seed: int) -> str:
    return name_of(kind, task, encoder.partition("@")[0], *given, "quick" if is_quick else "", seed=seed)
