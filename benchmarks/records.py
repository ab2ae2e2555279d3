"""What a run measured, and everything needed to run it again: frozen values, one JSON file a run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.durability.records import DamageCounts, DamageRecord, KillRecord, MemoryRecord, MemoryRun
from benchmarks.systems import Settings
from engine.origin import Machine, Origin

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class BuildCost:
    """What a system took to be ready; tokens are those that this call encoded."""

    seconds: float
    n_tokens: int = 0
    tokens_per_second: float | None = None  # None where nothing was encoded


@dataclass(frozen=True)
class RetrievalRecord:
    """The quality of one system on one split."""

    task: str
    dataset: str  # name@checksum
    system: str
    encoder: str  # name@fingerprint; "" where the system has none
    settings: Settings
    split: str
    k: int  # depth of the rankings
    n_queries: int
    metrics: dict[str, float]  # means, in [0, 1]
    build: BuildCost
    search_seconds: float  # all queries, one after the other
    query_ids: list[str]
    per_query: dict[str, list[float]]  # metric to its values, in the order of `query_ids`
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        parts = (self.task, self.system, self.encoder.partition("@")[0], self.split)
        return "-".join(part for part in parts if part)


@dataclass(frozen=True)
class Latency:
    """Milliseconds a query, one query at a time, warm."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True)
class RecallRecord:
    """How much of the exact ranking the approximate one finds, and what either costs."""

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
    ann: Latency
    exact: Latency
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"recall-{self.index}"


@dataclass(frozen=True)
class ExactnessRecord:
    """Whether scores are the sums of their parts, and certified rankings the true ones."""

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
class TrainingRecord:
    """What a training run measured on the valid split, step by step."""

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
    RetrievalRecord | RecallRecord | ExactnessRecord | KillRecord | DamageRecord | MemoryRecord | TrainingRecord
)
_KINDS: dict[str, type[Record]] = {
    "retrieval": RetrievalRecord,
    "recall": RecallRecord,
    "exactness": ExactnessRecord,
    "kill": KillRecord,
    "damage": DamageRecord,
    "memory": MemoryRecord,
    "training": TrainingRecord,
}
_PARTS = {"origin": Origin, "machine": Machine, "build": BuildCost, "ann": Latency, "exact": Latency}


def write_record(record: Record, folder: Path = RESULTS) -> Path:
    """Write `record.name`.json, one field a line; a record of the same name is replaced."""
    kind = next(kind for kind, cls in _KINDS.items() if isinstance(record, cls))
    fields = {"kind": kind, **asdict(record)}
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.name}.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    return path


def read_records(folder: Path = RESULTS) -> list[Record]:
    """All records of a folder, by file name."""
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> Record:
    fields = json.loads(path.read_text("utf-8"), object_hook=_part)
    for name in ("counts", "by_damage"):
        if name in fields:
            fields[name] = {kind: DamageCounts(**counts) for kind, counts in fields[name].items()}
    if "runs" in fields:
        fields["runs"] = [MemoryRun(**run) for run in fields["runs"]]
    return _KINDS[fields.pop("kind")](**fields)


def _part(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _PARTS[name](**value) if name in _PARTS and isinstance(value, dict) else value
        for name, value in fields.items()
    }
