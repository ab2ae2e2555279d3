"""Helpers that write documents into an index, and read its contents."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document, MetadataValue
from tests.fakes import FakeEncoder, make_document

ENCODER = {"name": "fake", "fingerprint": "f" * 32, "width": 32}


def commit(writer: Writer, *documents: Document) -> list[int]:
    return writer.commit(list(zip(documents, FakeEncoder().encode(documents), strict=True)))


def write_metadata(folder: Path, metadata: Mapping[str, Mapping[str, MetadataValue]]) -> Path:
    """An index of documents with metadata, by name."""
    with Writer(folder) as writer:
        writer.claim(ENCODER)
        documents = (
            make_document(name, "some words", title=f"The {name}", metadata=of) for name, of in metadata.items()
        )
        commit(writer, *documents)
    return folder


def contents(folder: Path) -> dict[str, str]:
    with IndexSnapshot(folder) as snapshot:
        return {document.doc_id: document.text for document, _ in snapshot.documents(np.arange(snapshot.n_documents))}


def killed_after(write: Callable[[], Writer]) -> None:
    """Write in a process of its own, which then ends without closing the writer, as if it were killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            writer = write()
            code = 9 if writer else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 9
