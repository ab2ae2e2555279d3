"""Chunks of documents, their vectors in FAISS, and rankings of documents by nearest chunks, for peers without these."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faiss
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from benchmarks.peers.peer import PeerConfig, sentence_encoder, transformer
from benchmarks.systems import Ranking, Settings
from engine.encoders.encoder import Vectors
from engine.encoders.tokenizer import Tokenizer
from engine.text.document import Document

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


_BLOCK_DOCUMENTS = 256


def blocks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """The documents in lists of `_BLOCK_DOCUMENTS`; no list is empty."""
    left = iter(documents)
    while block := list(islice(left, _BLOCK_DOCUMENTS)):
        yield block


class Chunker:
    """Cuts texts into consecutive windows of tokens without overlap; all but the last are full."""

    def __init__(self, config: PeerConfig) -> None:
        self._tokenizer = Tokenizer(config.backbone)
        self.max_tokens = min(config.window_tokens, config.max_tokens)  # of a chunk, special tokens counted

    def cut(self, text: str) -> list[str]:
        """The chunks of a text in their order; spaces between two chunks are in neither.

        A word is cut only if it is longer than a window, since tokens of the second part of a word differ from its
        tokens in the text. A text without a token is one chunk.
        """
        ((_, offsets),) = self._tokenizer.tokenize([text])
        chunks, first = [], 0
        while first < len(offsets):
            stop = self._stop(text, offsets, first)
            chunks.append(text[offsets[first][0] : offsets[stop - 1][1]])
            first = stop
        return chunks or [text]

    def _stop(self, text: str, offsets: list[tuple[int, int]], first: int) -> int:
        """One past the last token of the chunk that begins with token `first`."""
        full = first + self.max_tokens - self._tokenizer.n_special
        stop = full
        while first < stop < len(offsets) and _is_inside_word(text, offsets[stop][0]):
            stop -= 1
        return min(stop if stop > first else full, len(offsets))


def _is_inside_word(text: str, place: int) -> bool:
    return place > 0 and text[place - 1].isalnum() and text[place].isalnum()


DEPTH = 256  # initial depth: chunks of other documents for each chunk of the query, as in our own search
_DEEPER = 4  # factor by which the depth grows, as in our own search
_BLOCK_CHUNKS = 8192  # most chunks in one product


def deepened(ask: Callable[[int], Sequence[Ranking]], without: str, k: int, *, n_own: int, n_chunks: int) -> Ranking:
    """Rank at most `k` documents by their best pair of chunks, searching deeper until there are `k`.

    The document `without` is left out; the index has `n_own` of its chunks, or leaves them out itself.
    """
    depth = DEPTH
    while True:
        ranking = grouped(ask(min(depth + n_own, n_chunks)), without, k)
        if len(ranking) >= k or depth + n_own >= n_chunks:
            return ranking
        depth *= _DEEPER


def grouped(lists: Sequence[Ranking], without: str, k: int) -> Ranking:
    """Rank at most `k` documents by their best chunk among the found ones, equal ones by first occurrence.

    `lists` has, for each chunk of the query, the documents of the found chunks with their similarities in [-1, 1];
    a document can be in a list several times.
    """
    scores: dict[str, float] = {}
    for found in lists:
        for doc_id, similarity in found:
            if doc_id != without:
                scores[doc_id] = max(similarity, scores.get(doc_id, similarity))
    return heapq.nlargest(k, scores.items(), key=lambda item: item[1])


def best_targets(doc_ids: Sequence[str], scores: NDArray[np.floating], without: str, k: int) -> Ranking:
    """The `k` targets of highest score; equal ones in the order of `doc_ids`."""
    order = np.argsort(-scores, kind="stable")[: k + 1].tolist()
    found = [(doc_ids[row], float(scores[row])) for row in order]
    return [(doc_id, score) for doc_id, score in found if doc_id != without][:k]


def summed(queries: Vectors, chunks: Vectors, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """MaxSim of ColBERT (Khattab & Zaharia 2020, arXiv:2004.12832, eq. 3) over chunks instead of tokens.

    s(q, t) = sum_i max_j <q_i, t_j>, over all chunks of the index.

    for unit rows (I, D) and (C, D), the chunks of a document in consecutive rows from `starts` (N,) on; in [-I, I].
    """
    scores = np.empty(len(starts))
    ends = np.append(starts[1:], len(chunks))
    block = (ends - 1) // _BLOCK_CHUNKS
    for own in np.split(np.arange(len(starts)), np.flatnonzero(np.diff(block)) + 1):
        first, stop = starts[own[0]], ends[own[-1]]
        best = np.maximum.reduceat(queries @ chunks[first:stop].T, starts[own] - first, axis=1)  # (I, documents)
        scores[own] = best.sum(axis=0, dtype=np.float64)
    return scores


_INDEX_FILE = "index.faiss"
_OWNERS_FILE = "owners.npy"
_NAMES_FILE = "doc_ids.json"


class FlatVectors:
    """Vectors of texts cut from documents, in an exact FAISS index of inner products."""

    keeps_text = False
    _model: SentenceTransformer

    def _cut(self, text: str) -> list[str]:
        return [text]

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """As `Peer.build`."""
        doc_ids: list[str] = []
        owners: list[int] = []  # the row of the document of each text
        index = faiss.IndexFlatIP(self._model.get_embedding_dimension())
        for block in blocks(documents):
            cut = [self._cut(document.text) for document in block]
            owners += [len(doc_ids) + row for row, texts in enumerate(cut) for _ in texts]
            doc_ids += [document.doc_id for document in block]
            index.add(self._model.encode_document([text for texts in cut for text in texts], show_progress_bar=False))
        faiss.write_index(index, str(folder / _INDEX_FILE))
        np.save(folder / _OWNERS_FILE, np.array(owners, np.int64))
        (folder / _NAMES_FILE).write_text(json.dumps(doc_ids), "utf-8")

    def open(self, folder: Path) -> None:
        """As `Peer.open`."""
        self._index: Any = faiss.read_index(str(folder / _INDEX_FILE))
        self._owners: NDArray[np.int64] = np.load(folder / _OWNERS_FILE, allow_pickle=False)
        self._doc_ids: list[str] = json.loads((folder / _NAMES_FILE).read_text("utf-8"))

    def _nearest(self, vectors: Vectors, depth: int) -> list[Ranking]:
        similarities, texts = self._index.search(vectors, depth)
        return [
            [(self._doc_ids[owner], similarity) for owner, similarity in zip(owners, row, strict=True)]
            for owners, row in zip(self._owners[texts].tolist(), similarities.tolist(), strict=True)
        ]


class Aggregate(StrEnum):
    """The aggregation of chunk similarities to the score of a target."""

    MAX = "max"  # the best pair of a query chunk and a target chunk
    SUM = "sum"  # the sum over query chunks of the best match in the target: MaxSim over chunks


class ChunkVectors(FlatVectors):
    """Reads whole documents in chunks; `aggregate` is one of `Aggregate`.

    For MAX, the index is searched with each chunk of the query. The depth is increased by the number of chunks of the
    query's own document: FAISS could leave these out with a selector, but then multiplies without BLAS. SUM needs
    every chunk of every document, and is one product with the vectors in the index.
    """

    reads = None

    def __init__(self, config: PeerConfig, *, aggregate: str) -> None:
        self._aggregate = Aggregate(aggregate)
        self.name = "st-chunks" if self._aggregate is Aggregate.MAX else f"st-chunks-{aggregate}"
        self.encoder = config.label
        self._chunker = Chunker(config)
        self._model = sentence_encoder(config, self._chunker.max_tokens)
        self.settings: Settings = {"window_tokens": self._chunker.max_tokens, "factory": "Flat", "aggregate": aggregate}
        if self._aggregate is Aggregate.MAX:
            self.settings["depth"] = DEPTH

    def _cut(self, text: str) -> list[str]:
        return self._chunker.cut(text)

    def open(self, folder: Path) -> None:
        """As `Peer.open`."""
        super().open(folder)
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

    def _summed(self, vectors: Vectors, without: str, k: int) -> Ranking:
        rows = faiss.rev_swig_ptr(self._index.get_xb(), self._index.ntotal * self._index.d)  # a view
        scores = summed(vectors, rows.reshape(-1, self._index.d), self._starts)
        return best_targets(self._doc_ids, scores, without, k)


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


MAX_TOKENS = 512  # the limit of BERT-like models
_VECTORS_FILE = "tokens.safetensors"


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
