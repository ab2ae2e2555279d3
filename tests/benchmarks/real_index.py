"""A small index whose vectors have topics, as those of real corpora do; no text was encoded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.encoders.encoder import EncodedDocument, unit
from engine.store.writer import Writer
from engine.text.segmentation import Chunk, Coverage
from tests.fakes import make_document

WIDTH = 16
N_DOCUMENTS = 240


def write_real_index(folder: Path) -> None:
    """Two shards of documents on thirty topics, each with a word and a mean direction of its own."""
    rng = np.random.default_rng(0)
    topics = np.eye(WIDTH)[3] + rng.standard_normal((30, WIDTH)) / np.sqrt(np.arange(1, WIDTH + 1))
    made = []
    for number in range(N_DOCUMENTS):
        vectors = made_vectors(rng, topics[number % len(topics)])
        sections = [(f"part {part}", f"topic{number % len(topics)} d{number}") for part in range(len(vectors.sections))]
        made.append((make_document(f"d{number}", sections), vectors))
    with Writer(folder) as writer:
        writer.claim({"name": "made", "fingerprint": "m" * 32, "width": WIDTH})
        writer.commit(made[:100])
        writer.commit(made[100:])


def made_vectors(rng: np.random.Generator, topic: np.ndarray) -> EncodedDocument:
    """Some chunks around a document that lies around a topic; one section for every two of them."""
    spectrum = 1 / np.sqrt(np.arange(1, WIDTH + 1))
    centre = topic + 0.8 * spectrum * rng.standard_normal(WIDTH)
    n_chunks = int(rng.integers(2, 8))
    chunks = unit((centre + 0.8 * spectrum * rng.standard_normal((n_chunks, WIDTH))).astype(np.float32))
    sections = unit(np.stack([chunks[first : first + 2].sum(0) for first in range(0, n_chunks, 2)]))
    spans = tuple(Chunk(number // 2, 5 * number, 5 * number + 4, 3 + number) for number in range(n_chunks))
    return EncodedDocument(unit(chunks.sum(0)), sections, chunks, spans, Coverage(9, 9))
