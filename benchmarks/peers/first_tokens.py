"""sentence-transformers and FAISS: one vector a document, of its first tokens only."""

from __future__ import annotations

from benchmarks.peers.chunk_vectors import FlatVectors
from benchmarks.peers.peer import PeerConfig
from benchmarks.peers.shared_weights import sentence_encoder
from benchmarks.systems import Ranking, Settings
from engine.text.document import Document


class FirstTokens(FlatVectors):
    """Truncates documents and queries to `tokens`, special tokens counted, or to the limit of the model."""

    def __init__(self, config: PeerConfig, *, tokens: int) -> None:
        self.name = f"st-first-{tokens}"
        self.encoder = config.label
        self._model = sentence_encoder(config, tokens)
        read = int(self._model.max_seq_length or tokens)
        self.reads: int | None = read - config.n_special
        self.settings: Settings = {"tokens": read, "factory": "Flat"}

    def search(self, query: Document, k: int) -> Ranking:
        """As `Peer.search`."""
        vector = self._model.encode_query([query.text], show_progress_bar=False)
        (found,) = self._nearest(vector, min(k + 1, self._index.ntotal))
        return [(doc_id, score) for doc_id, score in found if doc_id != query.doc_id][:k]
