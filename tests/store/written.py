"""Helpers that write documents into an index, and read its contents."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from tests.fakes import FakeEncoder

ENCODER = {"name": "fake", "fingerprint": "f" * 32, "width": 32}


def commit(writer: Writer, *documents: Document) -> list[int]:
    return writer.commit(list(zip(documents, FakeEncoder().encode(documents), strict=True)))


def contents(folder: Path) -> dict[str, str]:
    with IndexSnapshot(folder) as snapshot:
        return {document.doc_id: document.text for document, _ in snapshot.documents(np.arange(snapshot.n_documents))}
