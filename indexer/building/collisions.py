"""Documents that would share a doc_id: which of them fails, and with which message."""

from __future__ import annotations

from pathlib import Path, PurePath

from engine.readers import Unreadable
from engine.text.document import Document
from indexer.building.doc_ids import absolute


def is_another_file(stored: str, source: str) -> bool:
    """Whether a document was read from another file than the one indexed under its doc_id.

    Both files must be there: a corpus that was moved is still the same corpus. Lines of JSON and
    documents that were made in memory have no file of their own.

    Args:
        stored: source of the document in the index.
        source: of the document that was read.
    """
    if stored == source or not (_is_file(stored) and _is_file(source)):
        return False
    return not Path(stored).samefile(source)


def is_gone(stored: str, source: str) -> bool:
    """Whether a document was read from another file, and the file it was indexed from is no longer there."""
    return stored not in ("", source) and _is_file(source) and not _is_file(stored)


def full_source(source: str) -> str:
    """The absolute path of a source that is a file; any other source as it is."""
    return str(absolute(Path(source))) if _is_file(source) else source


def repeated(document: Document) -> Unreadable:
    """The failure of a document whose doc_id came before in the same run."""
    return Unreadable(
        document.source or document.doc_id,
        f"doc_id {document.doc_id!r} came twice in this run; the first one was indexed: give each document its own",
        document.doc_id,
    )


def of_another_file(document: Document, stored: str) -> Unreadable:
    """The failure of a document whose doc_id belongs to the file `stored`."""
    folder = PurePath(document.source.removesuffix(document.doc_id)).name
    return Unreadable(
        document.source,
        f"doc_id {document.doc_id!r} belongs to another file, {stored}, which stays indexed; keep both with "
        f"--id-prefix {folder}/ (Python: id_prefix=), or put this one in its place with --replace (index.update)",
        document.doc_id,
    )


def _is_file(source: str) -> bool:
    """Whether a source is the path of a file; a source may hold what no path can."""
    try:
        return Path(source).is_file()
    except (OSError, ValueError):
        return False


class Seen:
    """Which catalog ids this run has met; a bit each."""

    def __init__(self) -> None:
        """Begin with none."""
        self._bits = bytearray()

    def add(self, document_id: int) -> None:
        """Note an id."""
        byte = document_id >> 3
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1024 - len(self._bits)))
        self._bits[byte] |= 1 << (document_id & 7)

    def __contains__(self, document_id: int) -> bool:
        byte = document_id >> 3
        return byte < len(self._bits) and bool(self._bits[byte] >> (document_id & 7) & 1)
