"""sentence-transformers and FAISS: a vector for each chunk of tokens, grouped by document when found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.blocks import blocks
from benchmarks.peers.chunker import Chunker
from benchmarks.peers.grouping import DEPTH, deepened, summed
from benchmarks.peers.peer import PeerConfig
from benchmarks.peers.shared_weights import sentence_encoder
from benchmarks.systems import Ranking, Settings
from engine.document import Document
from engine.encoders.encoder import Vectors

_INDEX_FILE = "index.faiss"
_OWNERS_FILE = "owners.npy"
_NAMES_FILE = "doc_ids.json"


class Aggregate(StrEnum):
    """How similarities of chunks become the score of a target."""

    MAX = "max"  # the best pair of a query chunk and a target chunk
    SUM = "sum"  # each query chunk's best in the target, added up: MaxSim over chunks


class ChunkVectors:
    """All of each document is read, in chunks; an exact FAISS index holds their vectors.

    The best pair is found by asking the index with each chunk of the query. It is asked for so
    many chunks more as the query's own document has: FAISS would leave them out by a selector,
    and then multiplies without BLAS. The sum needs every chunk of every document, and is one
    product with the vectors in the index.
    """

    keeps_text = False
    reads = None

    def __init__(self, config: PeerConfig, *, aggregate: str) -> None:
        """Load the encoder.

        Args:
            config: of the run.
            aggregate: one of `Aggregate`.
        """
        self._aggregate = Aggregate(aggregate)
        self.name = "st-chunks" if self._aggregate is Aggregate.MAX else f"st-chunks-{aggregate}"
        self.encoder = config.label
        self._chunker = Chunker(config)
        self._model = sentence_encoder(config, self._chunker.max_tokens)
        self.settings: Settings = {
            "window_tokens": self._chunker.max_tokens,
            "factory": "Flat",
            "aggregate": aggregate,
        }
        if self._aggregate is Aggregate.MAX:
            self.settings["depth"] = DEPTH
        self._doc_ids: list[str] = []

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """As `Peer.build`."""
        doc_ids: list[str] = []
        owners: list[int] = []  # of each chunk the row of its document
        index = faiss.IndexFlatIP(self._model.get_embedding_dimension())
        for block in blocks(documents):
            cut = [self._chunker.cut(document.text) for document in block]
            owners += [len(doc_ids) + row for row, chunks in enumerate(cut) for _ in chunks]
            doc_ids += [document.doc_id for document in block]
            texts = [chunk for chunks in cut for chunk in chunks]
            index.add(self._model.encode_document(texts, show_progress_bar=False))
        faiss.write_index(index, str(folder / _INDEX_FILE))
        np.save(folder / _OWNERS_FILE, np.array(owners, np.int64))
        (folder / _NAMES_FILE).write_text(json.dumps(doc_ids), "utf-8")

    def open(self, folder: Path) -> None:
        """As `Peer.open`."""
        self._index: Any = faiss.read_index(str(folder / _INDEX_FILE))
        self._owners: NDArray[np.int64] = np.load(folder / _OWNERS_FILE, allow_pickle=False)
        self._doc_ids = json.loads((folder / _NAMES_FILE).read_text("utf-8"))
        self._starts = np.searchsorted(self._owners, np.arange(len(self._doc_ids)))
        self._n_chunks = dict(zip(self._doc_ids, np.bincount(self._owners).tolist(), strict=True))

    def search(self, query: Document, k: int) -> Ranking:
        """As `Peer.search`."""
        vectors = self._model.encode_query(self._chunker.cut(query.text), show_progress_bar=False)
        if self._aggregate is Aggregate.SUM:
            return self._summed(vectors, query.doc_id, k)
        n_own = self._n_chunks.get(query.doc_id, 0)
        return deepened(
            lambda depth: self._nearest(vectors, depth), query.doc_id, k, n_own=n_own, n_chunks=self._index.ntotal
        )

    def _nearest(self, vectors: Vectors, depth: int) -> list[Ranking]:
        similarities, chunks = self._index.search(vectors, depth)
        return [
            [(self._doc_ids[owner], similarity) for owner, similarity in zip(owners, row, strict=True)]
            for owners, row in zip(self._owners[chunks].tolist(), similarities.tolist(), strict=True)
        ]

    def _summed(self, vectors: Vectors, without: str, k: int) -> Ranking:
        rows = faiss.rev_swig_ptr(self._index.get_xb(), self._index.ntotal * self._index.d)  # a view
        scores = summed(vectors, rows.reshape(-1, self._index.d), self._starts)
        order = np.argsort(-scores, kind="stable")[: k + 1].tolist()
        found = [(self._doc_ids[row], float(scores[row])) for row in order]
        return [(doc_id, score) for doc_id, score in found if doc_id != without][:k]
