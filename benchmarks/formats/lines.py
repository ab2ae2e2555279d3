"""Lines of text files, plain or gzipped, each with its place; does not interpret lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path

from engine.errors import EngineError


class FormatError(EngineError):
    """Raised when a file does not have its public format; names file and line."""


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Stream the lines of a file in UTF-8, decompressed for ".gz"; blank lines are skipped.

    Returns:
        For each line its place "FILE:NUMBER", counted from 1, and its text without the end of line.

    Raises:
        FormatError: the file is missing, an incomplete gzip file, or a line is not UTF-8.
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
    """Split a line into as many columns as there are names; the separator None is white space.

    Raises:
        FormatError: the line has more or fewer columns.
    """
    found = line.split(separator)
    if len(found) != len(names):
        between = "tabs" if separator else "white space"
        raise FormatError(
            f"{place} has {len(found)} columns, not {len(names)}; it must be {', '.join(names)} by {between}"
        )
    return found


def whole_number(place: str, name: str, text: str) -> int:
    """The integer in a column.

    Raises:
        FormatError: the text is not an integer.
    """
    try:
        return int(text)
    except ValueError:
        raise FormatError(f"{place} has the {name} {text!r}; it must be a whole number") from None


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
