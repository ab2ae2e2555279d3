"""txtai: a database of chunks, with one id for all chunks of a document, as its author advises for long documents.

See https://github.com/neuml/txtai/issues/94. txtai chooses the index type by the number of chunks: exact up
to 5,000, above that inverted lists, for which it also chooses the number of lists to search.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from txtai import Embeddings

from benchmarks.peers.chunk_vectors import DEPTH, Chunker, deepened
from benchmarks.peers.peer import PeerConfig
from benchmarks.systems import Ranking, Settings
from engine.text.document import Document


class TxtaiChunks:
    """txtai's `Embeddings` with its own pooling over the shared parameters; hits are grouped by id.

    It encodes the chunks of the query in each call, and thus again if the first result has too few documents.
    """

    name = "txtai"
    keeps_text = False  # its default: content is off
    reads = None

    def __init__(self, config: PeerConfig) -> None:
        self.encoder = config.label
        self._chunker = Chunker(config)
        self._embeddings = Embeddings(
            path=str(config.backbone),
            method=f"{config.pooling}pooling",
            gpu=False,
            vectors={"dtype": config.dtype, "use_safetensors": True},
        )
        self.settings: Settings = {"window_tokens": self._chunker.max_tokens, "depth": DEPTH}

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """As `Peer.build`."""
        self._embeddings.index(
            (document.doc_id, chunk, None) for document in documents for chunk in self._chunker.cut(document.text)
        )
        # The index settings that txtai chose for this number of chunks.
        index = self._embeddings.ann
        self.settings["components"] = index.config["build"]["settings"]["components"]
        if hasattr(index.backend, "nprobe"):
            self.settings["nprobe"] = index.nprobe()
        self._embeddings.save(str(folder))

    def open(self, folder: Path) -> None:
        """As `Peer.open`."""
        self._embeddings.load(str(folder))

    def search(self, query: Document, k: int) -> Ranking:
        """As `Peer.search`."""
        chunks = self._chunker.cut(query.text)
        nearest = partial(self._embeddings.batchsearch, chunks)
        return deepened(nearest, query.doc_id, k, n_own=len(chunks), n_chunks=self._embeddings.count())
