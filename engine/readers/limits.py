"""Limits on the size of a document, checked before work is done, not after."""

from __future__ import annotations

from typing import BinaryIO

from engine.errors import DocumentError

MAX_DOCUMENT_BYTES = 32 * 2**20  # the text of one document, in UTF-8
MAX_CONTAINER_BYTES = 512 * 2**20  # a PDF or DOCX file, pictures and fonts included
_PART_BYTES = 2**24


def check_text(text: str) -> None:
    """Refuse a text over `MAX_DOCUMENT_BYTES`.

    Raises:
        DocumentError: the text is too large.
    """
    if len(text) * 4 <= MAX_DOCUMENT_BYTES:
        return
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_DOCUMENT_BYTES:
        raise too_large("text", f"{size:,}", MAX_DOCUMENT_BYTES)


def read_limited(stream: BinaryIO, limit: int) -> bytes:
    """Read a stream to its end, but never more than `limit` bytes.

    Raises:
        DocumentError: the stream holds more.
    """
    parts: list[bytes] = []
    size = 0
    # In parts: one read of `limit` bytes allocates all of them, however short the stream is.
    while size <= limit and (part := stream.read(min(_PART_BYTES, limit + 1 - size))):
        parts.append(part)
        size += len(part)
    if size > limit:
        raise too_large("file", f"more than {limit:,}", limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(what: str, size: str, limit: int) -> DocumentError:
    """The error for something of `size` bytes where `limit` are allowed."""
    return DocumentError(f"the {what} is {size} bytes, the limit is {limit:,}; split it into several documents")
