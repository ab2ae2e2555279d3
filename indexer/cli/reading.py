"""The options that limit the reading of a document, sizes as people write them, and the reader within limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from indexer.cli.option_groups import option

if TYPE_CHECKING:
    from indexer.reading.reader import DocumentReader

STDIN = "-"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text: str) -> int:
    """Bytes of a size such as `2G` or `500 MiB`.

    Raises:
        click.BadParameter: the text is not a size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text, re.IGNORECASE)
    if match is None or match[2].lower() not in _UNITS:
        raise click.BadParameter(f"{text!r} is not a size; write for example 500M or 2G")
    return int(float(match[1]) * _UNITS[match[2].lower()])


read_seconds_option = option(
    "--read-seconds",
    type=click.FloatRange(0, min_open=True),
    default=60,
    help="Processor time to read one document, in seconds; by default 60.",
)
read_memory_option = option(
    "--read-memory",
    type=parse_bytes,
    default="1Gi",
    metavar="SIZE",
    help="Memory to read one document, on Linux; by default 1Gi.",
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
