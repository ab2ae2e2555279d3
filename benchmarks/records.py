"""What a run measured, and everything needed to run it again: frozen values, one JSON file a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias, get_args

from benchmarks.budgets.record import PlanRecord
from benchmarks.demand.record import DemandRecord
from benchmarks.durability.records import DamageRecord, KillRecord, MemoryRecord
from benchmarks.encoding.record import ThroughputRecord
from benchmarks.fuzzing.record import FuzzRecord
from benchmarks.load.record import LoadRecord
from benchmarks.measuring.latency import Percentiles
from benchmarks.pairs.record import MatchingRecord
from benchmarks.pairs.rerank_record import RerankRecord
from benchmarks.papers.record import PaperRecord
from benchmarks.peers.record import PeersRecord
from benchmarks.probing.record import ProbeRecord
from benchmarks.record_file import KIND, RESULTS, RecordError, rebuild
from benchmarks.runs import Run, read_run, run_files
from benchmarks.samples.record import SampleRecord
from benchmarks.scaling.addition_record import AdditionRecord
from benchmarks.scaling.record import ScaleRecord
from benchmarks.scisumm.record import SummaryRecord
from benchmarks.sections.records import FacetsRecord, FaithfulnessRecord, PlantedRecord
from benchmarks.slices.records import PositionRecord
from benchmarks.vectors.record import AnnRecord
from indexer.training.origin import Origin


@dataclass(frozen=True)
class RecallRecord:
    """How much of the exact ranking the approximate one finds, and what either costs."""

    kind: ClassVar[str] = "recall"

    index: str
    factory: str  # FAISS factory string; "" where the index has no generation yet
    nprobe: int  # 0 where the factory has none
    n_documents: int
    n_chunks: int
    k: int
    n_queries: int
    threads: int
    recall: float  # mean share of the exact top k found, in [0, 1]
    lowest_recall: float  # of the worst query
    ann: Percentiles
    exact: Percentiles
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"recall-{self.index}"


@dataclass(frozen=True)
class ExactnessRecord:
    """Whether scores are the sums of their parts, and certified rankings the true ones."""

    kind: ClassVar[str] = "exactness"

    index: str
    factory: str
    n_documents: int
    k: int
    n_queries: int
    n_hits: int
    largest_sum_error: float
    n_certified: int  # rankings held against the double loop
    n_ranked_otherwise: int  # of them; ties within 1e-6 aside
    largest_score_error: float
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"exactness-{self.index}-{self.factory.replace(',', '_')}"


@dataclass(frozen=True)
class StabilityRecord:
    """Whether scores and ranks depend on how they are asked for; counts by way of searching."""

    kind: ClassVar[str] = "stability"

    index: str
    factory: str  # FAISS factory string; "" where the index has no generation yet
    n_documents: int
    n_chunks: int
    where: str  # the filter
    n_queries: int
    n_hits: dict[str, int]  # that two ways have in common
    n_other_scores: dict[str, int]  # of them
    n_other_orders: dict[str, int]  # queries
    n_missed: dict[str, int]  # by depth: hits of the scan that the ANN index does not rank so high
    largest_shift: dict[str, int]  # by depth: difference of two ranks
    n_deep: int  # adjacent hits behind the first 200
    n_rises: int  # of them, where the score rises
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"stability-{self.index}"


@dataclass(frozen=True)
class BoilerplateRow:
    """One share of documents that have the passage; means over queries that have it, in [0, 1]."""

    share: float  # of the documents
    n_planted: int
    hosts: float  # of the first hits, those that have the passage
    overlap: float  # of the first hits without any passage, those that are found with it
    score: float  # share of the scores of the first hits that the passage takes
    passages: float  # of the chunk component
    crowd: float  # of the chunk component where thresholds are the (M+1)-th best of all documents
    words: float  # of what words add


@dataclass(frozen=True)
class BoilerplateRecord:
    """How much of the scores a passage takes that many documents have."""

    kind: ClassVar[str] = "boilerplate"

    corpora: list[str]  # name@checksum
    n_documents: int
    n_queries: int  # at most; no more than have the passage
    encoder: str
    rows: list[BoilerplateRow]
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"boilerplate-{self.n_documents}"


@dataclass(frozen=True)
class TrainingRecord:
    """What a training run measured on the valid split, step by step."""

    kind: ClassVar[str] = "training"

    run: str
    note: str  # what was tried
    corpora: dict[str, str]  # checksum by name
    settings: dict[str, str | int | float | bool | None]
    n_steps: int  # updates made
    seconds: float  # of updates
    valid_steps: list[int]
    valid: dict[str, list[float]]  # nDCG@10 by corpus and "mean", at each of the steps
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"training-{self.run}"


Record: TypeAlias = (
    Run
    | RecallRecord
    | ExactnessRecord
    | StabilityRecord
    | KillRecord
    | DamageRecord
    | MemoryRecord
    | TrainingRecord
    | PositionRecord
    | MatchingRecord
    | RerankRecord
    | ProbeRecord
    | SummaryRecord
    | FacetsRecord
    | FaithfulnessRecord
    | PlantedRecord
    | PeersRecord
    | AnnRecord
    | ThroughputRecord
    | ScaleRecord
    | AdditionRecord
    | PlanRecord
    | DemandRecord
    | SampleRecord
    | BoilerplateRecord
    | FuzzRecord
    | LoadRecord
    | PaperRecord
)
_KINDS: Mapping[str, type[Record]] = {kind.kind: kind for kind in get_args(Record) if kind is not Run}


def read_records(folder: Path = RESULTS) -> list[Record]:
    """All records of a folder, and its runs, by file name.

    Raises:
        RecordError: a file is none.
    """
    return [*map(_read, sorted(folder.glob("*.json"))), *map(read_run, run_files(folder))]


def _read(path: Path) -> Record:
    try:
        values = json.loads(path.read_text("utf-8"))
        return rebuild(_KINDS[values.pop(KIND)], values)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise RecordError(f"{path} is no record ({error!r}); keep nothing else in the folder of records") from error
