"""longmatch with the interface of a peer: an index by `build`; each query is encoded, also if indexed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from benchmarks.peers.peer import PeerConfig
from benchmarks.prepare import check_failures
from benchmarks.systems import Ranking, Settings
from engine.encoders.loading import load_encoder
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.query import Query, as_stored
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.text.document import Document
from indexer.building.builder import build

_INDEX_FOLDER = "index.lm"


class Longmatch:
    """Searches by the evidence score over the generation that `auto` chooses; each hit includes its parts."""

    name = "longmatch"
    keeps_text = True
    reads = None

    def __init__(self, config: PeerConfig) -> None:
        """Load the encoder."""
        self._encoder = load_encoder(
            config.encoder, device="cpu", dtype="bfloat16" if config.dtype == "bfloat16" else "float32"
        )
        self.encoder = config.label
        self.settings: Settings = {"factory": "auto", **asdict(Scoring())}

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """As `Peer.build`."""
        check_failures(build(folder / _INDEX_FOLDER, documents, encoder=self._encoder))

    def open(self, folder: Path) -> None:
        """As `Peer.open`."""
        self._index = Index.open(folder / _INDEX_FOLDER, encoder=self._encoder)
        # These are read at first use; the time belongs to opening.
        snapshot = self._index.snapshot
        _ = snapshot.parts[0].generation, snapshot.reference.vectors

    def search(self, query: Document, k: int) -> Ranking:
        """As `Peer.search`."""
        asked = Query(query, as_stored(self._encoder.encode([query])[0]))
        result = Searcher(self._index.snapshot).search(asked, Request(k=k, without=(query.doc_id,)))
        return [(hit.doc_id, hit.score) for hit in result.hits]
