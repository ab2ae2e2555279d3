"""Limits on the size of a document, checked before work is done, not after."""

from __future__ import annotations

from typing import BinaryIO

from engine.text.cleaning import too_large

MAX_CONTAINER_BYTES = 512 * 2**20  # a PDF or DOCX file, pictures and fonts included
_PART_BYTES = 2**24


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
