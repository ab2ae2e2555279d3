"""Lines of text files, plain or gzipped, each with its place; what a line means is for its reader."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path

from engine.errors import EngineError


class FormatError(EngineError):
    """Raised when a file of a public format is not what its reader knows; names file and line."""


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Stream the lines of a file in UTF-8, ".gz" unpacked on the way; blank lines are passed over.

    Returns:
        For each line its place "FILE:NUMBER", from 1, and its text without the end of line.

    Raises:
        FormatError: the file is not there, not a whole gzip file, or a line is not UTF-8.
    """
    number = 0
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if text.strip():
                    yield f"{path}:{number}", text
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}:{number} is not UTF-8 (byte {error.start}); convert the file to UTF-8") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FormatError(f"{path} is not a whole gzip file ({error}); fetch or pack it again") from error
    except OSError as error:
        raise FormatError(f"{path} cannot be read ({error.strerror or error}); name a file that is there") from error


def columns(place: str, line: str, names: Sequence[str], separator: str | None = "\t") -> list[str]:
    """Split a line into as many columns as there are names; None separates at white space.

    Raises:
        FormatError: there are more or fewer.
    """
    found = line.split(separator)
    if len(found) != len(names):
        between = "tabs" if separator else "white space"
        raise FormatError(
            f"{place} has {len(found)} columns, not {len(names)}; it must be {', '.join(names)} by {between}"
        )
    return found


def whole_number(place: str, name: str, text: str) -> int:
    """The number in a column.

    Raises:
        FormatError: it is none.
    """
    try:
        return int(text)
    except ValueError:
        raise FormatError(f"{place} has the {name} {text!r}; it must be a whole number") from None


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
