"""The options that limit the reading of a document, and the reader that enforces them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from indexer.cli.sizes import parse_bytes

if TYPE_CHECKING:
    from indexer.reading.reader import DocumentReader

STDIN = "-"

read_seconds_option = click.option(
    "--read-seconds",
    type=click.FloatRange(0, min_open=True),
    default=60,
    show_default=True,
    metavar="N",
    help="Limit of processor time, in seconds, to read one document.",
)
read_memory_option = click.option(
    "--read-memory",
    type=parse_bytes,
    default="1Gi",
    show_default=True,
    metavar="SIZE",
    help="Memory limit to read one document (Linux only).",
)


@contextmanager
def document_reader(paths: Sequence[str], seconds: float, memory_bytes: int) -> Iterator[DocumentReader | None]:
    """A reader for paths, or None without paths; its process starts while the caller imports other modules.

    If the only path is standard input, no process starts.
    """
    if not paths:
        yield None
        return
    from indexer.reading.reader import DocumentReader, ReadLimits

    reader = DocumentReader(ReadLimits(seconds, memory_bytes))
    with reader if set(paths) - {STDIN} else nullcontext():
        yield reader
