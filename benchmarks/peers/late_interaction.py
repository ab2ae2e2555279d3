"""Late interaction by sentence-transformers: one vector a token, and MaxSim with every document.

PyLate 1.6 and fast-plaid 1.7 have indexes for late interaction, but require older transformers and torch than the other
peers. `MultiVectorEncoder` of sentence-transformers 6 reads the models of PyLate and ColBERT, and scores exactly.
The token vectors are from the shared backbone, which was not trained for late interaction: a lower bound, not ColBERT.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from benchmarks.peers.chunk_vectors import best_targets, blocks
from benchmarks.peers.peer import PeerConfig, transformer
from benchmarks.systems import Ranking, Settings
from engine.text.document import Document

MAX_TOKENS = 512  # the limit of BERT-like models
_VECTORS_FILE = "tokens.safetensors"
_NAMES_FILE = "doc_ids.json"


class LateInteraction:
    """Reads the first tokens of documents and queries; vectors are stored in half precision, multiplied in float32."""

    name = "late-interaction"
    keeps_text = False

    def __init__(self, config: PeerConfig) -> None:
        from sentence_transformers import MultiVectorEncoder
        from sentence_transformers.base.modules import Normalize
        from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

        self.encoder = config.label
        modules = [transformer(config, MAX_TOKENS), MultiVectorMask(), Normalize(module_input_name="token_embeddings")]
        self._model = MultiVectorEncoder(modules=modules, device="cpu")
        read = int(self._model.max_seq_length or MAX_TOKENS)
        self.reads: int | None = read - config.n_special
        self.settings: Settings = {"tokens": read, "score": self._model.similarity_fn_name}

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """As `Peer.build`."""
        doc_ids: list[str] = []
        vectors: list[torch.Tensor] = []
        for block in blocks(documents):
            doc_ids += [document.doc_id for document in block]
            encoded = self._model.encode_document([document.text for document in block], show_progress_bar=False)
            vectors += [rows.half() for rows in encoded]
        n_tokens = torch.tensor([len(rows) for rows in vectors])
        save_file({"vectors": torch.cat(vectors), "n_tokens": n_tokens}, folder / _VECTORS_FILE)
        (folder / _NAMES_FILE).write_text(json.dumps(doc_ids), "utf-8")

    def open(self, folder: Path) -> None:
        """As `Peer.open`."""
        kept = load_file(folder / _VECTORS_FILE)
        # Processors multiply half precision several times slower than float32.
        self._vectors = list(kept["vectors"].float().split(kept["n_tokens"].tolist()))
        self._doc_ids: list[str] = json.loads((folder / _NAMES_FILE).read_text("utf-8"))

    def search(self, query: Document, k: int) -> Ranking:
        """As `Peer.search`."""
        (asked,) = self._model.encode_query([query.text], show_progress_bar=False)
        scores = self._model.similarity([asked.half().float()], self._vectors)[0].numpy()  # (N,)
        return best_targets(self._doc_ids, scores, query.doc_id, k)
