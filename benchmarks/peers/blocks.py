"""Streams in blocks, so that a peer that encodes lists need not hold a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

BLOCK_DOCUMENTS = 256

T = TypeVar("T")


def blocks(stream: Iterable[T], size: int = BLOCK_DOCUMENTS) -> Iterator[list[T]]:
    """Lists of `size` in the order of the stream, the last one of what is left; none is empty."""
    left = iter(stream)
    while block := list(islice(left, size)):
        yield block
