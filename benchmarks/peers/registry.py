"""The peers by name, each imported when it is made; which packages it needs, and in which versions they are here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from types import MappingProxyType

from benchmarks.packages import require
from benchmarks.peers.peer import Peer, PeerConfig

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
