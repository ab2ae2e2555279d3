"""The interface of a peer, and all peers by name: their packages and versions; each is imported when it is made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from benchmarks.packages import require
from benchmarks.systems import Ranking, Settings
from engine.document import Document


@dataclass(frozen=True)
class PeerConfig:
    """What all peers of a run have in common: weights, precision, threads."""

    encoder: str  # what `load_encoder` takes; ours is loaded by this name
    backbone: Path  # the folder of its weights, which every other peer loads
    label: str  # of the weights, name@sha256
    pooling: str  # "mean" or "cls"
    max_tokens: int  # that it reads at once, special ones counted
    n_special: int  # of a sequence
    width: int  # of its vectors
    dtype: str  # of the weights in memory, as torch names it
    threads: int
    window_tokens: int = 256  # of a chunk, special ones counted: what all-MiniLM-L6-v2's own configuration cuts at
    late_interaction: Path | None = None  # a trained late-interaction model, in place of the backbone's tokens


class Peer(Protocol):
    """A program that finds documents, driven through its public interface; a `System` once it is open.

    Its constructor loads the encoder, so that building and searching are timed without that.
    """

    @property
    def name(self) -> str:
        """Short and lower case."""

    @property
    def encoder(self) -> str:
        """The weights as name@sha256."""

    @property
    def settings(self) -> Settings:
        """What is needed, beside documents and encoder, to get the same ranking again."""

    @property
    def reads(self) -> int | None:
        """Tokens that it reads of a document at most, special ones left out; None for all of them."""

    @property
    def keeps_text(self) -> bool:
        """Whether what it keeps on disk holds the documents' text."""

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """Read a stream of documents once, and leave all that a search needs in an empty folder."""

    def open(self, folder: Path) -> None:
        """Make ready to search what `build` left, in this process or another."""

    def search(self, query: Document, k: int) -> Ranking:
        """At most `k` targets for a whole document, best first; one with the query's own doc_id is left out."""


EXTRA = "peers"
OURS = "longmatch"


@dataclass(frozen=True)
class Entry:
    """Where the class of a peer is, and what it is made with."""

    module: str
    made: str
    packages: Mapping[str, str] = field(default_factory=dict)  # module to import: distribution to install
    variant: Mapping[str, object] = field(default_factory=dict)
    has_chunks: bool = False  # so that it can be measured with chunks of several lengths


_SENTENCES = MappingProxyType({"sentence_transformers": "sentence-transformers"})
PEERS: Mapping[str, Entry] = {
    OURS: Entry("longmatch", "Longmatch"),
    "st-first-256": Entry("first_tokens", "FirstTokens", _SENTENCES, {"tokens": 256}),
    "st-first-512": Entry("first_tokens", "FirstTokens", _SENTENCES, {"tokens": 512}),
    "st-chunks": Entry("chunk_vectors", "ChunkVectors", _SENTENCES, {"aggregate": "max"}, has_chunks=True),
    "st-chunks-sum": Entry("chunk_vectors", "ChunkVectors", _SENTENCES, {"aggregate": "sum"}, has_chunks=True),
    "txtai": Entry("txtai_chunks", "TxtaiChunks", {"txtai": "txtai"}, has_chunks=True),
    "late-interaction": Entry("late_interaction", "LateInteraction", _SENTENCES),
    "lancedb": Entry("lancedb_chunks", "LancedbChunks", {**_SENTENCES, "lancedb": "lancedb"}, has_chunks=True),
}


def check_packages(names: Collection[str]) -> None:
    """Look for the packages of peers without importing them.

    Raises:
        MissingExtra: one is not installed.
    """
    for name in names:
        require(f"the peer {name}", PEERS[name].packages, EXTRA)


def make_peer(name: str, config: PeerConfig) -> Peer:
    """Import a peer of `PEERS` and load its encoder."""
    entry = PEERS[name]
    made: Peer = getattr(import_module(f"benchmarks.peers.{entry.module}"), entry.made)(config, **entry.variant)
    return made


def versions(name: str) -> dict[str, str]:
    """The versions of a peer's packages, by distribution; empty for ours, which is the commit of the record."""
    return {distribution: metadata.version(distribution) for distribution in PEERS[name].packages.values()}
