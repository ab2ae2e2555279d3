"""An encoder for the `mteb` package, which maps texts to document vectors; no index, no scores of sections.

import mteb
from benchmarks.formats.mteb_encoder import MtebEncoder
from engine.encoders import load_encoder

tasks = mteb.get_tasks(["LEMBQMSumRetrieval"])
mteb.evaluate(MtebEncoder(load_encoder("longmatch-minilm")), tasks)
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from benchmarks.packages import require
from engine.encoders.encoder import EncodedDocument, Encoder
from engine.errors import DocumentError
from engine.text.document import Document

Vectors = NDArray[np.float32]
Batch = Mapping[str, Sequence[str]]  # of mteb since version 2; "text" has the texts, titles included


class MtebEncoder:
    """Document vectors of an encoder with the interface of mteb; the similarity is the cosine."""

    def __init__(self, encoder: Encoder, *, batch_size: int = 32) -> None:
        self._encoder = encoder
        self._batch_size = batch_size

    @property
    def mteb_model_meta(self) -> object:
        """Name, revision and width, as mteb writes them into its results."""
        require("evaluation by mteb", {"mteb": "mteb"}, "mteb")
        model_meta = importlib.import_module("mteb.models.model_meta").ModelMeta
        name = self._encoder.name.rpartition("/")[2]
        facts = {
            "name": f"longmatch/{name}",
            "revision": self._encoder.fingerprint,
            "embed_dim": self._encoder.width,
            "similarity_fn_name": "cosine",
        }
        meta: object = model_meta.create_empty(facts)
        return meta

    def encode(self, inputs: Iterable[str] | Iterable[Batch], **_options: object) -> Vectors:
        """Encode texts of any length, or batches of texts from mteb's loader, all without a prompt.

        Returns:
            (n texts, D) float32, unit rows in the order of the texts; zeros for a text without a token.
        """
        rows: list[Vectors] = []
        texts = (text for item in inputs for text in ([item] if isinstance(item, str) else item["text"]))
        while batch := list(islice(texts, self._batch_size)):
            rows += self._rows(batch)
        return np.stack(rows) if rows else np.empty((0, self._encoder.width), np.float32)

    def similarity(self, queries: Vectors, targets: Vectors) -> Vectors:
        """Cosines of every query with every target: (Q, D) and (T, D) to (Q, T) in [-1, 1]."""
        return np.asarray(queries) @ np.asarray(targets).T

    def similarity_pairwise(self, queries: Vectors, targets: Vectors) -> Vectors:
        """Cosines of query i with target i: two arrays (N, D) to (N,)."""
        cosines: Vectors = np.einsum("nd,nd->n", np.asarray(queries), np.asarray(targets))
        return cosines

    def _rows(self, texts: Sequence[str]) -> list[Vectors]:
        """One vector per text; only texts with a token are encoded."""
        segmented = {}
        for place, text in enumerate(texts):
            try:
                segmented[place] = self._encoder.segment(Document.from_text(text))
            except DocumentError:
                continue
        encoded = dict(zip(segmented, self._encoder.encode_segmented(list(segmented.values())), strict=True))
        empty = EncodedDocument.unencoded(self._encoder.width)
        return [encoded.get(place, empty).document for place in range(len(texts))]
