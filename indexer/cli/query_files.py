"""Checks the files that a command line names before slow imports, and reads their documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.standard_input import STDIN, read_standard_input

if TYPE_CHECKING:
    from engine.readers import Unreadable
    from engine.text.document import Document
    from indexer.reading.reader import DocumentReader

_N_NAMED = 3  # documents of the same content that are listed


@dataclass(frozen=True, slots=True)
class Failure:
    """A document that was named and cannot be read."""

    source: str
    reason: str


def missing_files(names: Sequence[str]) -> list[Failure]:
    """The names that cannot be read: there is no such file, or it is a folder.

    Raises:
        click.UsageError: standard input is named twice.
    """
    if names.count(STDIN) > 1:
        raise click.UsageError(f"'{STDIN}' is named {names.count(STDIN)} times; standard input can be read once")
    failures = []
    for name in names:
        if name == STDIN:
            continue
        if Path(name).is_dir():
            failures.append(Failure(name, f"is a folder; name files in it, as {Path(name) / '*'}"))
        elif not Path(name).exists():
            hint = f"; to search with these words: --text {name!r}" if any(map(str.isspace, name)) else ""
            failures.append(Failure(name, f"No such file or directory{hint}"))
    return failures


@contextmanager
def opened_reader(names: Sequence[str], seconds: float, memory_bytes: int) -> Iterator[DocumentReader | None]:
    """A reader for names, or None without names; its process starts while the caller imports other modules."""
    if not names:
        yield None
        return
    from indexer.reading.reader import DocumentReader, ReadLimits

    with DocumentReader(ReadLimits(seconds, memory_bytes)) as reader:
        yield reader


def read_named(names: Sequence[str], reader: DocumentReader | None, suffix: str | None) -> Iterator[Document | Failure]:
    """Read documents in the order of their names."""
    if reader is None:
        return
    # Loads the readers, which takes a third of a second; searches by text and by id do not need them.
    from engine.readers import Unreadable
    from indexer.reading.requests import Request

    for name in names:
        found: Iterator[Document | Unreadable]
        found = read_standard_input(reader, suffix) if name == STDIN else reader.read([Request(name)])
        for one in found:
            yield Failure(one.source, one.reason) if isinstance(one, Unreadable) else one


def left_out_note(query: Document, copies: Sequence[str]) -> str:
    """A line that names the documents which are left out because they have the same content as the query."""
    names = ", ".join(copies[:_N_NAMED])
    more = f" and {len(copies) - _N_NAMED:,} more" if len(copies) > _N_NAMED else ""
    return f"left out: {names}{more}; same content as the query {query.doc_id}, shown by --with-itself"
