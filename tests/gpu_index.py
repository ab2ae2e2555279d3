"""An index of random vectors with chosen numbers of chunks, for tests of search on GPUs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.encoders.encoder import EncodedDocument, Vectors, unit
from engine.store.writer import Writer
from engine.text.document import Document
from engine.text.segmentation import Chunk, Coverage
from indexer.generation.generations import refresh_generation
from tests.fakes import make_document

WIDTH = 32


def drawn_rows(n: int, seed: int) -> Vectors:
    rng = np.random.default_rng(seed)
    return unit((rng.standard_normal((n, WIDTH)) + rng.standard_normal(WIDTH)).astype(np.float32))


def drawn_document(number: int, n_chunks: int) -> tuple[Document, EncodedDocument]:
    """Chunks around a centre of their own; three documents in a row are near each other."""
    text = "w " * n_chunks
    rows = drawn_rows(n_chunks, number - number % 3)
    rows = unit(rows + 0.3 * drawn_rows(n_chunks, 10_000 + number))
    middle = unit(rows.sum(axis=0))
    spans = tuple(Chunk(0, 2 * at, 2 * at + 1, 100) for at in range(n_chunks))
    coverage = Coverage(100 * n_chunks, 100 * n_chunks)
    document = make_document(f"doc{number:04d}", text, metadata={"third": number % 3, "number": number})
    return document, EncodedDocument(middle, middle[None], rows, spans, coverage)


def write_index(folder: Path, sizes: Sequence[int], *, factory: str | None = "Flat", first: int = 0) -> Path:
    """An index of documents with these numbers of chunks; without a factory it has no generation."""
    with Writer(folder) as writer:
        writer.claim({"name": "drawn", "fingerprint": "d" * 32, "width": WIDTH})
        drawn = [drawn_document(first + number, size) for number, size in enumerate(sizes)]
        for at in range(0, len(drawn), 50):
            writer.commit(drawn[at : at + 50])
        if factory is not None:
            refresh_generation(writer, factory, recall_floor=0.3)
    return folder
