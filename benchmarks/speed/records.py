"""Records of the programs of this package: values only, one file a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.record_file import Recorded, name_of
from indexer.origin import Origin


@dataclass(frozen=True)
class Fidelity:
    """Cosines of vectors of the same chunks."""

    n_chunks: int
    mean: float  # of longmatch's as an index stores them, to longmatch's in float32
    lowest: float
    rival_chunks: int
    rival_mean: float  # of sentence-transformers' from the chunks' texts, to longmatch's, both in float32
    rival_lowest: float  # below 1 where a text by itself becomes other tokens than inside its document


@dataclass(frozen=True)
class Pass:
    """One way in one round, over the whole sample."""

    seconds: float  # without loading and a first pass over a few chunks
    cpu_seconds: float  # of all cores
    peak_mib: float  # peak resident memory of the process, libraries and weights included


@dataclass(frozen=True)
class WayRun:
    """A way in all rounds."""

    dtype: str  # of the weights
    passes: list[Pass]  # by round


@dataclass(frozen=True)
class IndexingParts:
    """The parts of the end-to-end pass of a round."""

    encode_seconds: float  # part of the pass's seconds; a thread reads and segments meanwhile
    generation_seconds: float  # of the FAISS index, not part of the pass's seconds


@dataclass(frozen=True)
class ThroughputRecord(Recorded, kind="throughput"):
    """Ways to encode the same chunks, round by round in turn, and the machine's limit of products."""

    task: str
    dataset: str  # name@checksum of the whole dataset
    is_quick: bool  # few chunks, or few rounds: shows that all works, not how fast it is
    encoder: str  # name@sha256
    threads: int
    n_documents: int
    n_chunks: int
    n_tokens: int  # special ones left out
    gflop: float  # of the products of one pass over the sample, see `benchmarks.speed.encode.limits`
    ways: dict[str, WayRun]  # by the names of `benchmarks.speed.encode.ways.WAYS`
    indexing: list[IndexingParts]  # by round
    products: list[dict[str, float]]  # by round: GFLOP/s by "DTYPE MxKxN"
    operator_seconds: dict[str, float]  # by group, of a pass over a part of the sample; empty on a GPU
    fidelity: Fidelity
    origin: Origin
    device: str = "cpu"

    @property
    def n_rounds(self) -> int:
        """The number of rounds; in each of them every way ran once."""
        return len(self.products)

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        encoder = self.encoder.partition("@")[0]
        device = self.device.replace(":", "") if self.device != "cpu" else ""
        quick = "quick" if self.is_quick else ""
        return name_of(self.kind, self.task, encoder, device, f"threads{self.threads}", quick, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Recorded.extent`."""
        return {"chunks": self.n_chunks, "rounds": self.n_rounds}
