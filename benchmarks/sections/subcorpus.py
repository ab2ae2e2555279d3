"""A seeded part of a corpus, and an index over given documents; the corpus itself is read elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.datasets import DatasetError
from engine.encoders.encoder import Encoder
from engine.text.document import Document
from indexer import build

EXACT = "Flat"  # FAISS factory string whose lists are exact, so that no measurement depends on an ANN index


def sample_documents(
    documents: Iterable[Document], n: int, seed: int, *, max_chars: int | None = None
) -> list[Document]:
    """Draw at most `n` documents from a stream, each as likely as any other, in the order of the stream.

    Algorithm R of Vitter (1985): the i-th document takes the place of a random kept one with probability n / i. No more
    than `n` are in memory. Documents with more than `max_chars` characters are skipped.
    """
    rng = np.random.default_rng(seed)
    kept: list[tuple[int, Document]] = []
    fitting = (document for document in documents if max_chars is None or len(document.text) <= max_chars)
    for number, document in enumerate(fitting):
        if number < n:
            kept.append((number, document))
        elif (place := int(rng.integers(number + 1))) < n:
            kept[place] = (number, document)
    return [document for _, document in sorted(kept, key=lambda numbered: numbered[0])]


def index_documents(
    path: Path, documents: Sequence[Document], encoder: Encoder, log: Callable[[str], None] = lambda _: None
) -> None:
    """Make or update an index by the public `indexer.build`, with exact lists, replacing documents by doc_id."""
    n = len(documents)
    report = build(
        path,
        documents,
        encoder=encoder,
        factory=EXACT,
        progress=lambda so_far: log(f"{so_far.n_seen:,} of {n:,} documents, {so_far.seconds:.0f} s"),
    )
    if report.failures:
        first = report.failures[0]
        raise DatasetError(
            f"{len(report.failures)} of {n} documents were not indexed, the first is {first.doc_id!r}: "
            f"{first.reason}; leave them out of the corpus"
        )
