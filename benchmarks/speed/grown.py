"""An index grown from a real one: its documents, then copies of all of them, each copy turned as a whole.

First come the real documents themselves, copy 0, then copy 1 of the whole corpus, copy 2, and so on, each in an order
of its own; a stream that is cut off is the beginning of every longer one. Copy c turns by the angle TURN * g_c,p in
plane p of the corpus, g_c standard normal: documents that are near each other stay near, so topics stay topics. A copy
has the term counts of its original, but rare terms of its own, so that the vocabulary grows with the corpus. Texts are
tiny: one word a chunk.

Letters in shapes: B documents of a block, S their sections, C their chunks, R rows, D width, P planes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.errors import IndexMismatch
from engine.store.factory import AUTO
from engine.store.snapshot import IndexSnapshot, Positions
from engine.store.writer import Writer
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage, Section
from engine.words.apart import Apart
from engine.words.counts import TermTable, WordTables, counted
from engine.words.statistics import TermStatistics
from indexer.building.budget import left_beside
from indexer.generation.compaction import SHARD_CHUNKS
from indexer.generation.generations import options_for, publish_generation
from indexer.generation.recall import RECALL_FLOOR
from indexer.generation.reference import refresh_reference
from indexer.generation.resources import Footprint

COPY_MARK = "#copy"  # in the names of documents that were made
TURN = 1.1  # radians: the turn that commit a221d6f calibrated, at the median distance of neighbours in proposals
_SAMPLE_CHUNKS = 20_000  # enough for the principal directions of the corpus
_RARE = 1e-4  # probability of a term, below which each copy of the corpus has its own
_ORDER, _ANGLES, _TERMS = 1, 2, 3  # keep the random numbers apart
_WORD = "word "  # the text of a chunk


@dataclass(frozen=True, slots=True)
class Block:
    """Some documents, their vectors one after another."""

    originals: Positions  # (B,) rows of the source
    copies: NDArray[np.int64]  # (B,) 0 for the document itself, from 1 on for those made from it
    documents: Vectors  # (B, D) float32
    sections: Vectors  # (S, D)
    chunks: Vectors  # (C, D)
    n_sections: NDArray[np.int64]  # (B,)
    n_chunks: NDArray[np.int64]  # (B,)
    spans: NDArray[np.int32]  # (C, 4) section in its document, start, stop, tokens


class Source:
    """The documents of an open index, and those made from them."""

    def __init__(self, snapshot: IndexSnapshot, seed: int) -> None:
        if not snapshot.n_documents:
            raise IndexMismatch(f"{snapshot.folder} holds no document, at least 1 is needed; index some first")
        self.names = snapshot.doc_ids()
        if any(COPY_MARK in name for name in self.names):
            raise IndexMismatch("the index was itself grown from another one; name that one")
        self.snapshot, self.seed = snapshot, seed
        self.n_chunks: NDArray[np.int64] = snapshot.locations.n_chunks

    @property
    def checksum(self) -> str:
        """First 12 hex digits of a SHA-256 over the encoder, names and contents."""
        hashes = self.snapshot.content_hashes()
        lines = [str(self.snapshot.meta["encoder"]["fingerprint"]), *(f"{name} {hashes[name]}" for name in self.names)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]

    def order(self, n_chunks: int) -> tuple[Positions, NDArray[np.int64]]:
        """The rows and copies of the shortest stream of at least `n_chunks` chunks."""
        n_copies = -(-n_chunks // int(self.n_chunks.sum()))
        shuffled = (np.random.default_rng([self.seed, _ORDER, copy]).permutation(len(self.names)) for copy in
                    range(n_copies))  # fmt: skip
        originals = np.concatenate(list(shuffled))
        copies = np.repeat(np.arange(n_copies), len(self.names))
        n_documents = int(np.searchsorted(np.cumsum(self.n_chunks[originals]), n_chunks)) + 1
        return originals[:n_documents], copies[:n_documents]

    def blocks(
        self, originals: Positions, copies: NDArray[np.int64], block_chunks: int = SHARD_CHUNKS
    ) -> Iterator[Block]:
        """The documents of a stream with their vectors, about `block_chunks` chunks at once; no block mixes copies."""
        basis: Vectors | None = None
        for copy in np.unique(copies).tolist():
            rows = originals[copies == copy]
            edges = np.flatnonzero(np.diff((np.cumsum(self.n_chunks[rows]) - 1) // block_chunks)) + 1
            for part in np.split(rows, edges):
                block = self.read(part)
                if copy:
                    basis = principal_directions(self) if basis is None else basis
                    block = self._turned(block, copy, basis)
                yield block

    def read(self, rows: Positions) -> Block:
        """Documents with all their vectors, in the order given."""
        chunks, _ = self.snapshot.chunk_vectors(rows)
        return Block(
            originals=rows,
            copies=np.zeros(len(rows), np.int64),
            documents=self.snapshot.document_rows(rows).astype(np.float32),
            sections=np.concatenate([self.snapshot.section_vectors(row) for row in rows.tolist()]),
            chunks=chunks,
            n_sections=self.snapshot.locations.n_sections[rows],
            n_chunks=self.n_chunks[rows],
            spans=np.concatenate([self.snapshot.spans(row) for row in rows.tolist()]),
        )

    def _turned(self, block: Block, copy: int, basis: Vectors) -> Block:
        n_planes = (len(basis) - 1) // 2
        angles = TURN * np.random.default_rng([self.seed, _ANGLES, copy]).standard_normal(n_planes)
        rows = (turned(rows, basis, angles) for rows in (block.documents, block.sections, block.chunks))
        documents, sections, chunks = rows
        copies = np.full_like(block.copies, copy)
        return replace(block, copies=copies, documents=documents, sections=sections, chunks=chunks)

    def words(self, block: Block) -> WordTables:
        """The term counts of the documents of a block, all of whose sections are body text."""
        counts, statistics = self.snapshot.words(block.originals), self.snapshot.reference.statistics
        copy = int(block.copies[0])
        drawn = np.random.default_rng([self.seed, _TERMS, copy]).integers(1 << 32)
        key = np.uint32(drawn if copy else 0)
        words, pairs = _renamed(counts.words, statistics.words, key), _renamed(counts.pairs, statistics.pairs, key)
        starts = np.cumsum([0, *block.n_sections.tolist()], dtype=np.int64)
        no_groups = np.zeros(len(starts), np.int64)
        by_kind = Apart(np.zeros(int(starts[-1]), np.uint8), starts, np.empty(0, np.uint8), no_groups, counted([]))
        return replace(counts, words=words, pairs=pairs, apart=by_kind)


def _renamed(table: TermTable, statistics: TermStatistics, key: np.uint32) -> TermTable:
    """The same counts, with other ids for rare terms; the key 0 changes none."""
    is_rare = statistics.probabilities(table.terms) < _RARE
    terms, rows = np.where(is_rare, table.terms ^ key, table.terms), table.rows()
    order = np.lexsort((terms, rows))
    return TermTable(terms[order], table.counts[order], table.starts, table.occurrences)


def principal_directions(source: Source) -> Vectors:
    """(D, D) an orthonormal basis: columns 2p and 2p + 1 span plane p; the mean direction, last, never turns."""
    order = np.random.default_rng(source.seed).permutation(len(source.names))
    enough = int(np.searchsorted(np.cumsum(source.n_chunks[order]), _SAMPLE_CHUNKS)) + 1
    sample = source.read(np.sort(order[:enough])).chunks.astype(np.float64)
    mean = sample.mean(axis=0)
    length = np.linalg.norm(mean)
    direction = mean / length if length > 0 else np.eye(sample.shape[1])[0]
    rest = sample - np.outer(sample @ direction, direction)
    # The mean direction is given a variance below all others, which sorts it last.
    _, directions = np.linalg.eigh(rest.T @ rest / len(rest) - np.outer(direction, direction))  # rising
    return np.ascontiguousarray(directions[:, ::-1], np.float32)


def turned(rows: Vectors, basis: Vectors, angles: NDArray[np.floating]) -> Vectors:
    """Turn vectors (R, D) by angles (P,) in the planes of a basis; lengths and cosines among them stay."""
    coordinates: Vectors = rows @ basis
    # A plane's two coordinates are one complex number, and a turn is a product.
    coordinates[:, : 2 * len(angles)].view(np.complex64)[:] *= np.exp(1j * angles).astype(np.complex64)
    back: Vectors = (coordinates @ basis.T).astype(np.float32, copy=False)
    return back


def made_documents(block: Block, names: list[str]) -> Iterator[tuple[Document, EncodedDocument]]:
    """Tiny documents with the sections, vectors and token counts of a block; a made one has its original and copy."""
    chunk_edges = pairwise([0, *np.cumsum(block.n_chunks).tolist()])
    section_edges = pairwise([0, *np.cumsum(block.n_sections).tolist()])
    for number, (of_chunks, of_sections) in enumerate(zip(chunk_edges, section_edges, strict=True)):
        original, copy = names[block.originals[number]], int(block.copies[number])
        name = f"{original}{COPY_MARK}{copy}" if copy else original
        spans = block.spans[slice(*of_chunks)]
        n_sections = of_sections[1] - of_sections[0]
        ends = len(_WORD) * np.cumsum(np.bincount(spans[:, 0], minlength=n_sections))
        sections = tuple(Section("", (), start, stop) for start, stop in pairwise([0, *ends.tolist()]))
        chunks = tuple(
            Chunk(section, len(_WORD) * at, len(_WORD) * (at + 1) - 1, n_tokens)
            for at, (section, n_tokens) in enumerate(spans[:, [0, 3]].tolist())
        )
        n_tokens = int(spans[:, 3].sum())
        metadata = {"original": original, "copy": copy}
        yield (
            Document(name, name, _WORD * len(spans), sections, metadata, "grown"),
            EncodedDocument(
                document=block.documents[number],
                sections=block.sections[slice(*of_sections)],
                chunks=block.chunks[slice(*of_chunks)],
                chunk_spans=chunks,
                coverage=Coverage(n_tokens, n_tokens),
            ),
        )


def grow(index: Path, folder: Path, n_chunks: int, seed: int) -> dict[str, Any]:
    """Add documents to a grown index until it holds at least `n_chunks` chunks; a killed run resumes."""
    started = time.perf_counter()
    with IndexSnapshot(index) as snapshot, Writer(folder) as writer:
        source = Source(snapshot, seed)
        originals, copies = source.order(n_chunks)
        counters: dict[str, int] = writer.meta.get("counters", {"document": 1})
        n_there = counters["document"] - 1
        if n_there > len(originals):
            raise IndexMismatch(
                f"{folder} holds {n_there:,} documents, {len(originals):,} make {n_chunks:,} chunks; name sizes from "
                "small to large, or another --work folder"
            )
        writer.claim(snapshot.meta["encoder"])
        assert snapshot.language is not None
        writer.set_language(snapshot.language)
        for block in source.blocks(originals[n_there:], copies[n_there:]):
            writer.commit(list(made_documents(block, source.names)), source.words(block))
    return {"seconds": time.perf_counter() - started, "n_added": len(originals) - n_there}


def publish(folder: Path, memory_bytes: int | None) -> dict[str, Any]:
    """Pin a reference, and publish a generation over all documents, so that none is left to be scanned.

    An existing generation of the same documents and of this type is kept. `memory_bytes` is the budget of this process.
    """
    started = time.perf_counter()
    with Writer(folder) as writer:
        left = left_beside(memory_bytes, Footprint())
        refresh_reference(writer, lambda _: None)
        with IndexSnapshot(folder) as snapshot:
            row, n_chunks = snapshot.generation_row, snapshot.n_chunks
            chosen = options_for(snapshot, AUTO, left)[-1].factory
        if row is None or (row.n_vectors, row.factory) != (n_chunks, chosen):
            publish_generation(writer, AUTO, left_bytes=left, recall_floor=RECALL_FLOOR)
    return {"seconds": time.perf_counter() - started}
