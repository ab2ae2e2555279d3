"""What the throughput program records: values only, one file a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.encoding.fidelity import Fidelity
from benchmarks.record_file import name_of
from indexer.training.origin import Origin


@dataclass(frozen=True)
class Pass:
    """One way in one round, over the whole sample."""

    seconds: float  # without loading and a first pass over a few chunks
    cpu_seconds: float  # of all cores
    peak_mib: float  # the most resident in the process, libraries and weights included


@dataclass(frozen=True)
class WayRun:
    """A way in all rounds."""

    dtype: str  # of the weights
    passes: list[Pass]  # by round


@dataclass(frozen=True)
class IndexingParts:
    """What the end-to-end pass of a round consists of."""

    encode_seconds: float  # of its seconds; reading and segmenting go on beside, in a thread
    generation_seconds: float  # of the FAISS index, beyond its seconds


@dataclass(frozen=True)
class ThroughputRecord:
    """Ways to encode the same chunks, round by round in turn, beside what the machine can multiply."""

    kind: ClassVar[str] = "throughput"

    task: str
    dataset: str  # name@checksum of the whole
    is_quick: bool  # few chunks, or few rounds: shows that all works, not how fast it is
    encoder: str  # name@sha256
    threads: int
    n_documents: int
    n_chunks: int
    n_tokens: int  # special ones left out
    gflop: float  # of the products of one pass over the sample, see `benchmarks.encoding.flops`
    ways: dict[str, WayRun]  # by the names of `benchmarks.encoding.ways.WAYS`
    indexing: list[IndexingParts]  # by round
    products: list[dict[str, float]]  # by round: GFLOP/s by "DTYPE MxKxN"
    operator_seconds: dict[str, float]  # by group, of a pass over a part of the sample; empty on a GPU
    fidelity: Fidelity
    origin: Origin
    device: str = "cpu"

    @property
    def n_rounds(self) -> int:
        """In each of which every way had its turn."""
        return len(self.products)

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        encoder = self.encoder.partition("@")[0]
        device = self.device.replace(":", "") if self.device != "cpu" else ""
        quick = "quick" if self.is_quick else ""
        return name_of(self.kind, self.task, encoder, device, f"threads{self.threads}", quick, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"chunks": self.n_chunks, "rounds": self.n_rounds}
