"""The input of a run of `longmatch index`: the named paths, or the documents that failed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from engine.readers import Unreadable
    from engine.text.document import Document
    from indexer.building.doc_ids import FileIds
    from indexer.reading.reader import DocumentReader
    from indexer.reading.requests import Request


@dataclass(frozen=True)
class Corpus:
    """The input of a run: paths, or documents that failed before; empty if the run only encodes documents."""

    paths: tuple[str, ...] = ()
    ids: FileIds | None = None
    n_files: int | None = None  # None if not known
    requests: Sequence[Request] = ()
    left_out: Sequence[tuple[str, str]] = ()  # source and reason of failures that cannot be read again
    unsupported_files: Mapping[str, int] = field(default_factory=dict)  # number of files in folders, by suffix

    @property
    def sources(self) -> Sequence[str]:
        """The paths, or the sources of the documents that failed before."""
        return self.paths or [request.source for request in self.requests]

    def read(self, reader: DocumentReader | None) -> Iterator[Document | Unreadable]:
        """Read the documents."""
        from indexer.building.corpus import read_corpus

        if self.paths:
            return read_corpus(self.paths, reader, ids=self.ids)
        return iter(()) if reader is None else reader.read(self.requests)


def named_corpus(index: Path, paths: tuple[str, ...], id_prefix: str) -> Corpus:
    """The corpus of PATH...; a path that does not exist ends the run here, before slow imports."""
    from indexer.building.corpus import count_files, unsupported_files
    from indexer.building.doc_ids import FileIds

    if not paths:
        return Corpus()
    return Corpus(paths, FileIds(id_prefix, index), count_files(paths), unsupported_files=unsupported_files(paths))


def failed_corpus(index: Path) -> Corpus:
    """The documents that failed before."""
    from indexer.building.retrying import find_failed

    retry = find_failed(index)
    if not retry.requests and not retry.left_out:
        click.echo(f"no document of {index} has failed")
    return Corpus(n_files=len(retry.requests), requests=retry.requests, left_out=retry.left_out)


def echo_left_out(corpus: Corpus) -> int:
    """Print the failures that were not read again, with the reasons; returns their number."""
    for source, reason in corpus.left_out:
        click.echo(f"not read again: {source}: {reason}", err=True)
    return len(corpus.left_out)
