"""What a run of peers records: values only, one file a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from benchmarks.measuring.latency import Percentiles
from benchmarks.record_file import name_of
from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class PeerRun:
    """One peer: what it found, and what that took."""

    peer: str  # with the length of its chunks where a run has several: st-chunks@128
    versions: dict[str, str]  # of its packages; empty for ours
    encoder: str  # name@sha256 of its weights
    settings: Settings
    keeps_text: bool
    metrics: dict[str, float]  # means, in [0, 1]
    per_query: dict[str, list[float]]  # metric to its values, in the order of `PeersRecord.query_ids`
    n_documents: int
    tokens_per_document: float  # that it reads, mean; special ones left out
    load_seconds: float  # of imports and the encoder; no part of building
    build_seconds: float
    documents_per_second: float
    open_seconds: float
    latency: Percentiles
    index_bytes: int
    start_mib: float  # resident with imports and encoder, before building
    build_peak_mib: float
    search_peak_mib: float
    commit: str = ""  # at which it was measured, where it is not that of the record


@dataclass(frozen=True)
class PeersRecord:
    """Peers on the same documents, with the same weights, threads and queries, one after another on one machine."""

    kind: ClassVar[str] = "peers"

    task: str
    dataset: str  # name@checksum
    split: str
    is_quick: bool  # a small part of the task: shows that all works, not what is good
    limit: int  # queries asked, the first of the split; 0 for all
    k: int  # depth of the rankings
    n_queries: int
    encoder: str  # name@sha256
    dtype: str
    threads: int
    query_ids: list[str]
    peers: list[PeerRun]
    origin: Origin
    failed: dict[str, str] = field(default_factory=dict)  # peers, and why they have no result

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        encoder = self.encoder.partition("@")[0]
        given = (self.dtype, f"threads{self.threads}", f"k{self.k}", f"first{self.limit}" if self.limit else "")
        return name_of(self.kind, self.task, self.split, encoder, *given, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"peers": len(self.peers), "queries": self.n_queries}
