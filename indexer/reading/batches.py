"""Groups requests for small files into batches for the reading process, since each message costs time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from indexer.reading.requests import Request, is_json_lines

Batch: TypeAlias = list[Request]

_MOST_FILES = 32
_MOST_BYTES = 2**19  # of the files of a batch; a larger file is a batch of its own


def batches(requests: Iterable[Request]) -> Iterator[Batch]:
    """The requests in their order; each file of a batch of several holds one document."""
    batch: Batch = []
    n_bytes = 0
    for request in requests:
        size = _size(request)
        if batch and (len(batch) == _MOST_FILES or n_bytes + size > _MOST_BYTES):
            yield batch
            batch, n_bytes = [], 0
        batch.append(request)
        n_bytes += size
    if batch:
        yield batch


def _size(request: Request) -> int:
    """Bytes of a file; above `_MOST_BYTES` for a missing file, a line, or a file that can hold many documents."""
    if request.line is not None or is_json_lines(request.source):
        return _MOST_BYTES + 1
    try:
        return Path(request.source).stat().st_size
    except OSError:
        return _MOST_BYTES + 1
