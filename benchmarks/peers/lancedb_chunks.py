"""LanceDB: a table with one row a chunk, results grouped by document; vectors from sentence-transformers.

According to its documentation, tables below 100,000 vectors need no index and are scanned; above that, it recommends
IVF_HNSW_SQ for the balance of recall and latency (https://docs.lancedb.com/indexing/vector-index). This index computes
distances from codes, so the documented refinement recomputes them from the stored vectors. The query's own document is
left out by a filter before the search (https://docs.lancedb.com/search/filtering).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import lancedb
import pyarrow as pa
from lancedb.index import HnswSq

from benchmarks.peers.chunk_vectors import DEPTH, Chunker, blocks, deepened
from benchmarks.peers.peer import PeerConfig, sentence_encoder
from benchmarks.systems import Ranking, Settings
from engine.encoders.encoder import Vectors
from engine.text.document import Document

SCAN_BELOW_VECTORS = 100_000
_TABLE = "chunks"
_REFINE_FACTOR = 1  # rescores the returned vectors; without it the index returns distances of another scale


class LancedbChunks:
    """Chunks with text and vector in a table, which is searched with each chunk of the query."""

    name = "lancedb"
    keeps_text = True
    reads = None

    def __init__(self, config: PeerConfig, *, scan_below: int = SCAN_BELOW_VECTORS) -> None:
        self.encoder = config.label
        self._chunker = Chunker(config)
        self._model = sentence_encoder(config, self._chunker.max_tokens)
        self._scan_below = scan_below
        self.settings: Settings = {
            "window_tokens": self._chunker.max_tokens,
            "index": f"none below {scan_below:,} vectors, then IVF_HNSW_SQ",
            "refine_factor": _REFINE_FACTOR,
            "depth": DEPTH,
        }

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """As `Peer.build`."""
        vector = pa.list_(pa.float32(), self._model.get_embedding_dimension())
        schema = pa.schema([("doc_id", pa.string()), ("text", pa.string()), ("vector", vector)])
        batches = self._batches(documents, schema)
        table = lancedb.connect(str(folder)).create_table(_TABLE, data=batches, schema=schema)
        if table.count_rows() >= self._scan_below:
            table.create_index("vector", config=HnswSq(distance_type="cosine"))

    def _batches(self, documents: Iterable[Document], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for block in blocks(documents):
            rows = [(document.doc_id, chunk) for document in block for chunk in self._chunker.cut(document.text)]
            doc_ids, texts = [doc_id for doc_id, _ in rows], [chunk for _, chunk in rows]
            vectors = self._model.encode_document(texts, show_progress_bar=False)
            flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
            yield pa.RecordBatch.from_arrays([pa.array(doc_ids), pa.array(texts), flat], schema=schema)

    def open(self, folder: Path) -> None:
        """As `Peer.open`."""
        self._table = lancedb.connect(str(folder)).open_table(_TABLE)
        self._n_chunks = self._table.count_rows()

    def search(self, query: Document, k: int) -> Ranking:
        """As `Peer.search`."""
        vectors = self._model.encode_query(self._chunker.cut(query.text), show_progress_bar=False)
        nearest = partial(self._nearest, vectors, query.doc_id)
        return deepened(nearest, query.doc_id, k, n_own=0, n_chunks=self._n_chunks)

    def _nearest(self, vectors: Vectors, without: str, depth: int) -> list[Ranking]:
        quoted = without.replace("'", "''")
        asked = self._table.search(vectors).distance_type("cosine").refine_factor(_REFINE_FACTOR)
        asked = asked.where(f"doc_id != '{quoted}'", prefilter=True).select(["doc_id", "_distance"]).limit(depth)
        found = asked.to_arrow().to_pydict()
        lists: list[Ranking] = [[] for _ in vectors]
        # The result for a single vector has no column query_index.
        numbers = found.get("query_index") or [0] * len(found["doc_id"])
        for number, doc_id, distance in zip(numbers, found["doc_id"], found["_distance"], strict=True):
            lists[number].append((doc_id, 1 - distance))
        return lists
