"""Records of the programs of this package: values only, one file a run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.record_file import Recorded
from indexer.origin import Origin


@dataclass(frozen=True)
class StabilityRecord(Recorded, kind="stability", file="stability-{index}"):
    """Whether scores and ranks depend on how a search is made; counts by way of searching."""

    index: str
    factory: str  # FAISS factory string; "" where the index has no generation yet
    n_documents: int
    n_chunks: int
    where: str  # the filter
    n_queries: int
    n_hits: dict[str, int]  # hits in common with the first 200 on one thread
    n_other_scores: dict[str, int]  # hits in common whose score differs
    n_other_orders: dict[str, int]  # queries whose order of hits differs
    n_missed: dict[str, int]  # by depth: hits of the scan that the ANN index does not rank so high
    largest_shift: dict[str, int]  # by depth: difference of two ranks
    n_deep: int  # adjacent hits behind the first 200
    n_rises: int  # adjacent hits behind the first 200 where the score rises
    seconds: float
    origin: Origin


@dataclass(frozen=True)
class DuplicatesRecord(Recorded, kind="duplicates", file="duplicates-{n_documents}{quick}"):
    """Whether `pairs` finds the near-duplicates that were planted in a corpus, and its time."""

    corpora: list[str]  # name@checksum
    n_documents: int  # with the planted ones
    n_characters: int  # of all texts
    least: float  # least score of a listed pair
    n_pairs: int  # listed
    planted: dict[str, list[str | float]]  # one value a near-duplicate of original, replaced (share), score (or 0)
    scores: list[float]  # of all listed pairs, best first
    build_cpu_seconds: float  # processor time of indexing, of all threads and processes
    cpu_seconds: float  # processor time of finding the pairs
    seconds: float  # of finding the pairs
    is_quick: bool
    origin: Origin


@dataclass(frozen=True)
class BoilerplateRow:
    """One share of documents that have the passage; means over queries that have it, in [0, 1]."""

    share: float  # of the documents
    n_planted: int
    hosts: float  # of the first hits, those that have the passage
    overlap: float  # of the first hits without any passage, those that are found with it
    score: float  # share of the scores of the first hits that the passage takes
    passages: float  # share of the chunk component
    crowd: float  # share of the chunk component where thresholds are the (M+1)-th best of all documents
    words: float  # share of the contribution of words


@dataclass(frozen=True)
class BoilerplateRecord(Recorded, kind="boilerplate", file="boilerplate-{n_documents}"):
    """The share of a passage that many documents have in the scores."""

    corpora: list[str]  # name@checksum
    n_documents: int
    n_queries: int  # at most; not more than the documents that have the passage
    encoder: str
    rows: list[BoilerplateRow]
    seconds: float
    origin: Origin


@dataclass(frozen=True)
class DemandRow:
    """One number of candidates, over all queries one after another."""

    way: str  # "words", "N candidates" or "all"
    candidates: int | None  # None where none were encoded for queries
    metrics: dict[str, float]  # means of the product's rule, in [0, 1]
    other_rules: dict[str, dict[str, float]]  # means by rule, of the same hits in another order
    per_query: list[float]  # nDCG@10 of the product's rule
    tokens: dict[str, int]  # tokens encoded so far, the sample included, by number of queries
    documents: dict[str, int]  # documents that have vectors, by number of queries


@dataclass(frozen=True)
class DemandRecord(Recorded, kind="demand"):
    """Quality and cost by the number of candidates."""

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
        """The name of the file, without suffix."""
        first = f"-{self.encoder.partition('@')[0]}-first{self.n_queries}" if self.is_encoded else ""
        return f"demand-{self.task}-{self.split}{first}"


@dataclass(frozen=True)
class SampleRow:
    """One size of the sample and one m, for the queries of one corpus."""

    corpus: str
    is_mixed: bool  # searched in all corpora at once, with one reference drawn from all
    n_sample: int  # documents of the reference
    exceeding: int  # m
    per_query: list[float]  # nDCG@10


@dataclass(frozen=True)
class SampleRecord(Recorded, kind="samples"):
    """Quality by the size of the reference."""

    datasets: list[str]  # name@checksum
    encoder: str  # name@fingerprint
    split: str
    n_documents: int  # of all corpora
    rows: list[SampleRow]
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        names = "-".join(dataset.partition("@")[0] for dataset in self.datasets)
        return f"samples-{names}-{self.split}"
