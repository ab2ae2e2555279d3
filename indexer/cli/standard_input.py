"""Documents on standard input: copied into a file of the detected format, and read within limits like any other."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from engine.readers import Unreadable
    from engine.text.document import Document
    from indexer.reading.reader import DocumentReader

STDIN = "-"
_NAME = "stdin"

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


def read_standard_input(reader: DocumentReader, suffix: str | None) -> Iterator[Document | Unreadable]:
    """Read the documents on standard input: one, or several of JSON lines."""
    from engine.errors import DocumentError
    from engine.readers import Unreadable
    from engine.readers.detection import detected_suffix
    from indexer.reading.requests import Request

    with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
        # In a folder of its own, so that a LaTeX file includes no other.
        path = Path(folder) / _NAME
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            named = path.rename(path.with_suffix(suffix or detected_suffix(path)))
        except DocumentError as error:
            yield Unreadable(_NAME, str(error), _NAME)
            return
        for one in reader.read([Request(str(named))]):
            yield replace(one, source=one.source.replace(str(named), _NAME, 1))
