"""The plan of a run, as values: counts, and time, memory, GPU memory and disk with their parts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Parts:
    """Base of what has a total: the sum of its fields."""

    @property
    def total(self) -> float:
        """The sum."""
        values: list[float] = [getattr(self, field.name) for field in fields(self)]
        return sum(values)


@dataclass(frozen=True)
class Seconds(Parts):
    """Where the time goes."""

    reading: float = 0.0  # and segmenting, as far as it is not hidden behind encoding
    encoding: float = 0.0
    storing: float = 0.0
    generation: float = 0.0


@dataclass(frozen=True)
class Memory(Parts):
    """Peak of own memory in bytes; freed parts count, since they seldom return to the system."""

    program: int = 0
    weights: int = 0  # of the encoder, on the CPU
    encoding: int = 0  # peak of reading, tokenizing and encoding, beyond program and parameters
    batches: int = 0  # waiting documents, and vectors that are not stored yet
    index: int = 0  # the FAISS index
    building: int = 0  # training and adding, or measuring the recall


@dataclass(frozen=True)
class Vram(Parts):
    """Peak of GPU memory in bytes, without the memory of the driver."""

    weights: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Disk(Parts):
    """The index folder at its largest, in bytes, with what is there now."""

    catalog: int = 0
    shards: int = 0
    generation: int = 0  # FAISS index and postings of words
    reference: int = 0
    replaced_generation: int = 0  # the old generation, which stays until the new one is published

    @property
    def afterwards(self) -> int:
        """Bytes of the index folder after the run."""
        return int(self.total) - self.replaced_generation


@dataclass(frozen=True)
class Way:
    """The cost of a run that encodes none, some or all of the documents, see `index --encode`."""

    encode: str  # none, later or all
    seconds: float
    tokens: int  # encoded in the run
    disk_bytes: int  # of the index afterwards


@dataclass(frozen=True)
class Plan:
    """Counts of a run, and sizes after the run. All are estimates; counts are exact if `is_counted`."""

    n_new: int
    n_changed: int
    n_unchanged: int
    n_unreadable: int
    n_chars: int  # this and the next two: of new and changed documents
    n_tokens: int
    n_chunks: int
    n_chunks_after: int  # of the index
    is_counted: bool  # whether all documents were read, not a sample
    factory: str  # of the new generation; "" where none is due
    seconds: Seconds
    memory: Memory
    mapped_bytes: int  # pages of shards that are mapped beside, and taken back when memory is short
    vram: Vram | None  # None on the CPU
    disk: Disk
    ladder: tuple[str, ...]  # the types of index that were considered
    ways: tuple[Way, ...]  # none, later, all; all other values of the plan are for `all`

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with totals."""
        parts = {"seconds": self.seconds, "memory": self.memory, "vram": self.vram, "disk": self.disk}
        return {
            **asdict(self),
            **{name: None if part is None else {**asdict(part), "total": part.total} for name, part in parts.items()},
        }
