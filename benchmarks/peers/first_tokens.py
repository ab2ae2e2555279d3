"""sentence-transformers and FAISS: one vector a document, of its first tokens only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import faiss

from benchmarks.peers.chunk_vectors import blocks
from benchmarks.peers.peer import PeerConfig
from benchmarks.peers.shared_weights import sentence_encoder
from benchmarks.systems import Ranking, Settings
from engine.document import Document

_INDEX_FILE = "index.faiss"
_NAMES_FILE = "doc_ids.json"


class FirstTokens:
    """Truncates documents and queries by `encode_document` and `encode_query`; an exact FAISS index of cosines."""

    keeps_text = False

    def __init__(self, config: PeerConfig, *, tokens: int) -> None:
        """Load the encoder.

        Args:
            config: the configuration of the run.
            tokens: most tokens read of each document and query, special tokens counted; the limit of the model also
                applies.
        """
        self.name = f"st-first-{tokens}"
        self.encoder = config.label
        self._model = sentence_encoder(config, tokens)
        read = int(self._model.max_seq_length or tokens)
        self.reads: int | None = read - config.n_special
        self.settings: Settings = {"tokens": read, "factory": "Flat"}
        self._doc_ids: list[str] = []

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """As `Peer.build`."""
        doc_ids: list[str] = []
        index = faiss.IndexFlatIP(self._model.get_embedding_dimension())
        for block in blocks(documents):
            doc_ids += [document.doc_id for document in block]
            index.add(self._model.encode_document([document.text for document in block], show_progress_bar=False))
        faiss.write_index(index, str(folder / _INDEX_FILE))
        (folder / _NAMES_FILE).write_text(json.dumps(doc_ids), "utf-8")

    def open(self, folder: Path) -> None:
        """As `Peer.open`."""
        self._index = faiss.read_index(str(folder / _INDEX_FILE))
        self._doc_ids = json.loads((folder / _NAMES_FILE).read_text("utf-8"))

    def search(self, query: Document, k: int) -> Ranking:
        """As `Peer.search`."""
        vector = self._model.encode_query([query.text], show_progress_bar=False)
        scores, rows = self._index.search(vector, min(k + 1, self._index.ntotal))
        found = [(self._doc_ids[row], float(score)) for row, score in zip(rows[0], scores[0], strict=True)]
        return [(doc_id, score) for doc_id, score in found if doc_id != query.doc_id][:k]
