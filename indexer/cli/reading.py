"""The documents that a command line names: options that limit their reading, checks of files, and their text."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.store.catalog import holds_index
from engine.text.document import Document, Unreadable
from indexer.cli.options import FAILED, PARTLY, collected, option, together
from indexer.cli.terminal import log

if TYPE_CHECKING:
    from indexer.reading.reader import DocumentReader, ReadLimits

STDIN = "-"
_NAME_OF_STDIN = "stdin"
_N_NAMED = 3  # documents of the same content that are listed
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


@dataclass(frozen=True, slots=True)
class Reading:
    """How the documents that a command names are read."""

    read_seconds: float
    read_memory: int
    form_of_stdin: str | None = None  # detected by default

    @property
    def limits(self) -> ReadLimits:
        """The limits for one document."""
        from indexer.reading.reader import ReadLimits

        return ReadLimits(self.read_seconds, self.read_memory)


# Limits for reading, which the command gets as its argument `reading`.
reading_options = together(
    option(
        "--read-seconds",
        type=click.FloatRange(0, min_open=True),
        default=60,
        help="Processor time to read one document, in seconds; by default 60.",
    ),
    option(
        "--read-memory",
        type=parse_bytes,
        default="1Gi",
        metavar="SIZE",
        help="Memory to read one document, on Linux; by default 1Gi.",
    ),
    collected(reading=Reading),
)


class Queries:
    """The queries of a command: doc_ids, texts and documents, in this order. `failed` has those that cannot be read.

    Raises:
        click.BadParameter: there is no such format of standard input.
        click.UsageError: standard input is named twice.
    """

    def __init__(
        self, reading: Reading, documents: Sequence[str], doc_ids: Sequence[str] = (), texts: Sequence[str] = ()
    ) -> None:
        self._suffix = check_form(reading.form_of_stdin)
        self._doc_ids, self._texts = doc_ids, texts
        self.failed = missing_files(documents)
        missing = {failure.source for failure in self.failed}
        self.files = [name for name in documents if name not in missing]

    def __bool__(self) -> bool:
        return bool(self.files or self._doc_ids or self._texts)

    def read(self, reader: DocumentReader | None) -> Iterator[Document | str]:
        """Read the queries one after another; `reader` is open."""
        yield from self._doc_ids
        yield from map(_text_query, self._texts)
        for document in read_named(self.files, reader, self._suffix):
            if isinstance(document, Unreadable):
                self.failed.append(document)
            else:
                yield document

    def end(self, *, are_answered: bool) -> None:
        """Name the documents that could not be read; where there are some, exit with the status of the command."""
        for failure in self.failed:
            log(f"failed: {failure.source}: {failure.reason}")
        if self.failed:
            sys.exit(PARTLY if are_answered else FAILED)


def _text_query(text: str) -> Document:
    # Imported here, so that a usage error does not load the segmentation.
    from engine.text.segmentation import divide

    return Document("text", textwrap.shorten(text, 60, placeholder="…"), text, divide(text))


def missing_files(names: Sequence[str]) -> list[Unreadable]:
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
            is_index = holds_index(Path(name))
            hint = "search one index at a time" if is_index else f"name files in it, as {Path(name) / '*'}"
            failures.append(Unreadable(name, f"is {'an index' if is_index else 'a folder'}; {hint}"))
        elif not Path(name).exists():
            hint = f"; to search with these words: --text {name!r}" if any(map(str.isspace, name)) else ""
            failures.append(Unreadable(name, f"No such file or directory{hint}"))
    return failures


@contextmanager
def opened_reader(names: Sequence[str], reading: Reading) -> Iterator[DocumentReader | None]:
    """A reader for names, or None without names; its process starts while the caller imports other modules."""
    if not names:
        yield None
        return
    from indexer.reading.reader import DocumentReader

    with DocumentReader(reading.limits) as reader:
        yield reader


def read_named(
    names: Sequence[str], reader: DocumentReader | None, suffix: str | None
) -> Iterator[Document | Unreadable]:
    """Read documents in the order of their names."""
    if reader is None:
        return
    # Loads the readers, which takes a third of a second; searches by text and by id do not need them.
    from indexer.reading.reader import Request

    for name in names:
        yield from _read_standard_input(reader, suffix) if name == STDIN else reader.read([Request(name)])


def read_each(names: Sequence[str], reading: Reading) -> list[Document]:
    """The only document of each file.

    Raises:
        click.ClickException: a file does not exist, cannot be read, or does not hold exactly one document.
    """
    suffix = check_form(reading.form_of_stdin)
    if missing := missing_files(names):
        raise _unread(missing[0])
    with opened_reader(names, reading) as reader:
        return [only_document(name, list(read_named([name], reader, suffix))) for name in names]


def only_document(name: str, found: list[Document | Unreadable]) -> Document:
    """The document of a file.

    Raises:
        click.ClickException: the file holds none or several, or cannot be read.
    """
    if len(found) != 1:
        count = f"{len(found):,} documents" if found else "no document"
        raise click.ClickException(f"{name} holds {count}; name a file of one document")
    if isinstance(found[0], Unreadable):
        raise _unread(found[0])
    return found[0]


def _unread(failure: Unreadable) -> click.ClickException:
    return click.ClickException(f"{failure.source}: {failure.reason}")


def left_out_note(query: Document, copies: Sequence[str]) -> str:
    """A line that names the documents which are left out because they have the same content as the query."""
    names = ", ".join(copies[:_N_NAMED])
    more = f" and {len(copies) - _N_NAMED:,} more" if len(copies) > _N_NAMED else ""
    return f"left out: {names}{more}; same content as the query {query.doc_id}, shown by --with-itself"


as_option = click.option(
    "--as",
    "form_of_stdin",
    metavar="FORMAT",
    help="Format of standard input, for example pdf, docx, html, md or jsonl.gz; detected by default.",
)


def check_form(form: str | None) -> str | None:
    """The suffix of a format, with its dot.

    Raises:
        click.BadParameter: there is no such format.
    """
    if form is None:
        return None
    # Loads the readers, which a command without the option does not need.
    from engine.readers import FORMATS
    from engine.text.document import without_gz

    suffix = "." + form.lower().lstrip(".")
    if without_gz(suffix) not in FORMATS:
        known = " ".join(one[1:] for one in FORMATS)
        raise click.BadParameter(f"{form!r} is no known format; known are {known}, each also with .gz")
    return suffix


def _read_standard_input(reader: DocumentReader, suffix: str | None) -> Iterator[Document | Unreadable]:
    """Read the documents on standard input: one, or several of JSON lines."""
    from engine.errors import DocumentError
    from engine.readers.reader import detected_suffix
    from indexer.reading.reader import Request

    with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
        # In a folder of its own, so that a LaTeX file includes no other.
        path = Path(folder) / _NAME_OF_STDIN
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            named = path.rename(path.with_suffix(suffix or detected_suffix(path)))
        except DocumentError as error:
            yield Unreadable(_NAME_OF_STDIN, str(error), _NAME_OF_STDIN)
            return
        for one in reader.read([Request(str(named))]):
            yield replace(one, source=one.source.replace(str(named), _NAME_OF_STDIN, 1))
