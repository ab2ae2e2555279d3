"""Whole-document vectors in memory, and the nearest of them to a query. No catalog, no files.

Vectors stay float16, as shards hold them, and FAISS compares queries with them directly. That is half the memory
of float32 and half the bytes read for each query, and just as exact.

Letters in shapes: N documents, R documents of a list, D width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.scoring.lists import RankedLists
from engine.store.ann import selector
from engine.store.faiss_distribution import require_one_faiss
from engine.store.halves import as_float32

require_one_faiss()
import faiss  # noqa: E402


class DocumentIndex:
    """The document vectors of one snapshot, by position."""

    def __init__(self, rows: NDArray[np.float16]) -> None:
        """Take over (N, D) unit rows."""
        self.rows = rows
        self._index = faiss.IndexScalarQuantizer(
            rows.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        if len(rows):
            self._index.add_sa_codes(np.ascontiguousarray(rows).view(np.uint8))
            # Keep one copy: `rows` becomes a view of the codes in FAISS.
            held = faiss.rev_swig_ptr(self._index.codes.data(), rows.nbytes)
            self.rows = held.view(np.float16).reshape(rows.shape)

    def similarities(self, vector: Vectors, positions: NDArray[np.int64]) -> Vectors:
        """Cosines (R,) float32 of a query's vector (D,) with R documents."""
        found: Vectors = as_float32(self.rows[positions]) @ vector
        return found

    def nearest(self, vector: Vectors, allowed: NDArray[np.bool_], length: int) -> RankedLists:
        """One exact list of the nearest documents.

        Args:
            vector: (D,) float32.
            allowed: (N,) the documents that may be found.
            length: R, reduced if fewer documents are allowed.

        Returns:
            Lists (1, R), their similarities those of `similarities`.
        """
        n_allowed = int(np.count_nonzero(allowed))
        length = min(length, n_allowed)
        if not length:
            return RankedLists(np.empty((1, 0), np.int64), np.empty((1, 0), np.float32))
        parameters = None
        if n_allowed < len(allowed):
            parameters = faiss.SearchParameters(sel=selector(allowed))  # type: ignore[call-arg]
        _, I = self._index.search(vector[None], length, params=parameters)  # noqa: E741
        similarities = self.similarities(vector, I[0])
        order = np.lexsort((I[0], -similarities))
        return RankedLists(I[:, order], similarities[None, order])
