"""Lines of text files, plain or gzipped: read with their places, and written as JSON; does not interpret lines."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

from engine.errors import EngineError


class FormatError(EngineError):
    """Raised when a file does not have its public format; names file and line."""


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Stream the lines of a file in UTF-8, decompressed for ".gz"; blank lines are skipped.

    Returns:
        For each line its place "FILE:NUMBER", counted from 1, and its text without the end of line.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
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
    """Split a line into as many columns as there are names, or raise a `FormatError`; None is white space."""
    found = line.split(separator)
    if len(found) != len(names):
        between = "tabs" if separator else "white space"
        raise FormatError(
            f"{place} has {len(found)} columns, not {len(names)}; it must be {', '.join(names)} by {between}"
        )
    return found


def whole_number(place: str, name: str, text: str) -> int:
    """The integer in a column, or a `FormatError`."""
    try:
        return int(text)
    except ValueError:
        raise FormatError(f"{place} has the {name} {text!r}; it must be a whole number") from None


def write_json_lines(path: Path, values: Iterable[Mapping[str, object]]) -> None:
    """Write a gzip file, one value a line, whose bytes depend only on the values, not on the time."""
    part = path.with_name(path.name + ".unfinished")
    with (
        part.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        TextIOWrapper(packed, "utf-8", newline="\n") as text,
    ):
        text.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    part.replace(path)
