"""A sample of a corpus, stratified by format, size, and whether the index holds the documents.

A stratum holds files of one format, or lines of JSON, whose sizes differ by a factor of two at most.
"""

from __future__ import annotations

import gzip
import random
import sys
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from engine.readers import Unreadable, is_readable
from engine.readers.fields import USUAL, Fields
from engine.text.cleaning import MAX_DOCUMENT_BYTES
from engine.text.document import Document
from indexer.building.corpus import CorpusFiles, list_corpus
from indexer.building.doc_ids import FileIds
from indexer.reading.reader import DocumentReader
from indexer.reading.requests import Request, is_json_lines

_MOST = 16  # most units drawn from a stratum
_LEAST = 6
_BYTES = 1 << 20  # about the most bytes drawn from a stratum, but at least `_LEAST` units
_MAX_LINE_BYTES = 4 * MAX_DOCUMENT_BYTES  # a longer line is refused, so its rest is not kept


@dataclass(frozen=True, slots=True)
class Unit:
    """The source of one document: a file, or a line of a file that holds many."""

    source: str
    doc_id: str  # "" of a line, which has to be parsed to know
    size_bytes: int
    line: bytes | None = None
    fields: Fields = USUAL

    def read(self, reader: DocumentReader) -> Document | Unreadable:
        """Parse it."""
        results = list(reader.read([Request(self.source, self.doc_id, self.line, fields=self.fields)]))
        return results[0] if results else Unreadable(self.source, "the line is empty")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A unit, and the part of its stratum that it represents."""

    unit: Unit
    n_units: float  # units of the stratum for each drawn one, at least 1
    share: float  # bytes of the stratum for each drawn byte, at least 1


@dataclass
class _Stratum:
    n_units: int = 0
    n_bytes: int = 0
    drawn: list[Unit] = field(default_factory=list)


def units_of(paths: Sequence[str] | CorpusFiles, ids: FileIds | None = None) -> Iterator[Unit]:
    """All units of a corpus; lines are read, not parsed.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
    """
    files = paths if isinstance(paths, CorpusFiles) else list_corpus(paths)
    if files.reads_stdin:
        yield from _lines(sys.stdin.buffer, "stdin", files.fields)
    for file, doc_id in files.named(ids):
        if is_json_lines(file.name):
            yield from _lines_of(file, files.fields)
        else:
            yield Unit(str(file), doc_id, file.stat().st_size, fields=files.fields)


def _lines_of(file: Path, fields: Fields) -> Iterator[Unit]:
    try:
        with file.open("rb") as stream:
            if file.name.lower().endswith(".gz"):
                with cast(BinaryIO, gzip.GzipFile(fileobj=stream)) as unpacked:
                    yield from _lines(unpacked, str(file), fields)
            else:
                yield from _lines(stream, str(file), fields)
    except (OSError, EOFError, zlib.error):
        return  # the run reports the failure


def _lines(stream: BinaryIO, source: str, fields: Fields) -> Iterator[Unit]:
    while line := stream.readline(_MAX_LINE_BYTES):
        size, part = len(line), line
        while not part.endswith(b"\n") and (part := stream.readline(_MAX_LINE_BYTES)):
            size += len(part)
        if line.strip():
            yield Unit(source, "", size, line, fields)


def _suffix(path: Path) -> str:
    """The suffixes of a format; of 2004.14974.gz the last alone."""
    return "".join(path.suffixes[-2 if is_readable(path) else -1 :]).lower()


def draw(units: Iterable[Unit], known: Container[str] = (), seed: int = 0) -> list[Drawn]:
    """Draw some units of each stratum, all of a small one.

    Algorithm R of Vitter (1985, doi:10.1145/3147.3165) in each stratum: one pass, and every
    unit is drawn as likely as the others.

    `known` are the doc_ids that the index holds.
    """
    rng = random.Random(seed)
    strata: dict[tuple[str, int, bool], _Stratum] = {}
    for unit in units:
        size_class = unit.size_bytes.bit_length()
        suffix = "" if unit.line is not None else _suffix(Path(unit.source))
        stratum = strata.setdefault((suffix, size_class, unit.doc_id in known), _Stratum())
        stratum.n_units += 1
        stratum.n_bytes += unit.size_bytes
        most = max(_LEAST, min(_MOST, _BYTES >> size_class))
        if len(stratum.drawn) < most:
            stratum.drawn.append(unit)
        elif (place := rng.randrange(stratum.n_units)) < most:
            stratum.drawn[place] = unit
    return [one for _, stratum in sorted(strata.items()) for one in _weighted(stratum)]


def _weighted(stratum: _Stratum) -> Iterator[Drawn]:
    n_units = stratum.n_units / len(stratum.drawn)
    n_bytes = sum(unit.size_bytes for unit in stratum.drawn)
    share = stratum.n_bytes / n_bytes if n_bytes else n_units
    for unit in stratum.drawn:
        yield Drawn(unit, n_units, share)
