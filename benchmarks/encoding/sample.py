"""A seeded sample of a corpus as a corpus of its own, and its chunks as texts; nothing is encoded here."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.datasets import Dataset, read_documents
from benchmarks.formats.lines import read_lines
from engine.document import Document
from engine.encoders.encoder import Encoder, SegmentedDocument

TEXTS_FILE = "chunks.json"
_MOST_CHARS = 2000  # of a chunk, mean over a sample; 126 tokens of English are some 600


@dataclass(frozen=True)
class Sample:
    """Documents, and the chunks that an encoder of ours cuts them into."""

    dataset: Dataset  # whose corpus is the sample; judgments are those of the whole one
    texts: Path  # a JSON list of the chunks' texts, in reading order
    n_documents: int
    n_tokens: int  # of all chunks, special ones left out
    chunk_tokens: list[int]  # of each chunk, special ones left out, in reading order

    @property
    def n_chunks(self) -> int:
        """Of all documents."""
        return len(self.chunk_tokens)


def draw_sample(dataset: Dataset, encoder: Encoder, n_chunks: int, folder: Path, *, seed: int) -> Sample:
    """Write documents until they have so many chunks, or the whole corpus where it has fewer.

    Documents come in the order of seeded hashes of their ids, and stand in the sample
    in the order of the corpus, each in its own line as it is.

    Args:
        dataset: the whole one, in any layout.
        encoder: that cuts documents into chunks.
        n_chunks: at least so many; the last document drawn is kept whole.
        folder: an empty one, for corpus and texts.
        seed: of the hashes.
    """
    drawn = _drawn(dataset, encoder, n_chunks, seed)
    corpus = folder / dataset.corpus.name
    _copy_lines(dataset.corpus, corpus, drawn)
    part = replace(dataset, corpus=corpus)
    segmented = [encoder.segment(document) for document in read_documents(part)]
    texts = folder / TEXTS_FILE
    texts.write_text(json.dumps(list(chunk_texts(segmented)), ensure_ascii=False), "utf-8")
    chunk_tokens = [chunk.n_tokens for one in segmented for chunk in one.chunks]
    return Sample(part, texts, len(segmented), sum(chunk_tokens), chunk_tokens)


def chunk_texts(segmented: Iterable[SegmentedDocument]) -> Iterator[str]:
    """The text of each chunk's span."""
    for one in segmented:
        for chunk in one.chunks:
            yield one.document.text[chunk.start : chunk.stop]


def read_texts(file: Path) -> list[str]:
    """The texts of a sample's chunks."""
    texts: list[str] = json.loads(file.read_text("utf-8"))
    return texts


def _drawn(dataset: Dataset, encoder: Encoder, n_chunks: int, seed: int) -> set[str]:
    """Ids of the sample; of the corpus only as many documents are held as may be needed."""
    sizes = {document.doc_id: len(document.text) for document in read_documents(dataset)}
    ordered = sorted(sizes, key=lambda doc_id: hashlib.sha256(f"{seed} {doc_id}".encode()).digest())
    candidates, n_chars = dict[str, Document | None](), 0
    for doc_id in ordered:
        if n_chars >= n_chunks * _MOST_CHARS:
            break
        candidates[doc_id] = None
        n_chars += sizes[doc_id]
    for document in read_documents(dataset):
        if document.doc_id in candidates:
            candidates[document.doc_id] = document
    drawn, n_there = set[str](), 0
    for doc_id, found in candidates.items():
        if n_there >= n_chunks:
            break
        assert found is not None
        n_there += len(encoder.segment(found).chunks)
        drawn.add(doc_id)
    return drawn


def _copy_lines(source: Path, target: Path, doc_ids: Collection[str]) -> None:
    with gzip.open(target, "wb") if target.suffix == ".gz" else target.open("wb") as file:
        for _, line in read_lines(source):
            record = json.loads(line)
            if str(record.get("_id", record.get("id"))) in doc_ids:
                file.write(line.encode() + b"\n")
