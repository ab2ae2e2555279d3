"""Reads the source of a LaTeX document as arXiv sends it: a tar archive or one file, in gzip or plain.

An archive is one document, that of its main file. Members are read in memory, links are not followed, and the content
decides, not the name: a browser unpacks a `.gz` file without renaming it.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from engine.errors import DocumentError
from engine.readers.detection import GZIP, detected_suffix, suffix_of
from engine.readers.encoding import MAX_CONTAINER_BYTES, read_limited
from engine.readers.latex import read as read_latex
from engine.readers.latex import read_loaded
from engine.readers.latex_source import Members, included_files, is_fragment, load
from engine.text.cleaning import MAX_DOCUMENT_BYTES
from engine.text.document import Document

MAX_ARCHIVE_BYTES = MAX_CONTAINER_BYTES // 2  # unpacked; held twice for a moment
MAX_MEMBERS = 10_000
_NEXT = "unpack it, and index the folder of each document"
_SOURCE_SUFFIXES = (".tex", ".ltx", ".latex", ".tex.gz")
_ABSTRACT = (b"\\begin{abstract}", b"\\abstract", b"\\maketitle")


def holds_source(path: Path) -> bool:
    """Whether a file begins as a tar archive, or as LaTeX in gzip."""
    try:
        return detected_suffix(path) in (".tar", ".tar.gz", ".tex.gz")
    except (OSError, DocumentError):
        return False


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read the one document of a LaTeX source.

    The main file is a complete document that no other file includes; of several, one with an abstract or a made
    title, and then the one with most text. The others are counted as left out.

    Raises:
        DocumentError: there is no LaTeX in it, it is damaged, or it is beyond the limits.
    """
    data = _unpacked(data)
    suffix = suffix_of(data)
    if suffix == ".tar":
        return _read_archive(data, doc_id, source)
    if suffix != ".tex":
        raise DocumentError(
            f"it is neither a tar archive nor LaTeX, it looks like {suffix}; unpack it, or name it {suffix}.gz"
        )
    return read_latex(data, doc_id, source)


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(GZIP):
        return data
    try:
        with cast(BinaryIO, gzip.GzipFile(fileobj=io.BytesIO(data))) as stream:
            return read_limited(stream, MAX_ARCHIVE_BYTES)
    except DocumentError as error:
        raise DocumentError(f"it unpacks to more than {MAX_ARCHIVE_BYTES:,} bytes; {_NEXT}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DocumentError(f"it is not a whole gzip file ({error}); fetch or pack it again") from error


def _read_archive(data: bytes, doc_id: str, source: str) -> Document:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            folder = Members(dict(_files(archive)))
            mains = _main_files(folder)
            if not mains:
                raise DocumentError(
                    "it is a tar archive without a LaTeX document; unpack it, and name the documents in it"
                )
            latex = load(folder.read(mains[0]), mains[0], folder)
    except (tarfile.TarError, EOFError, RecursionError, ValueError) as error:
        raise DocumentError(f"it is a damaged tar archive ({error}); fetch or pack it again") from error
    return read_loaded(latex, doc_id, source, n_others=len(mains) - 1)


def _files(archive: tarfile.TarFile) -> Iterator[tuple[Path, Callable[[], BinaryIO]]]:
    """The regular files of an archive; not links, nor sparse files, which unpack to more than they hold."""
    for number, member in enumerate(archive):
        if number == MAX_MEMBERS:
            raise DocumentError(f"it has more than {MAX_MEMBERS:,} members; {_NEXT}")
        if member.isreg() and not member.issparse() and member.size <= MAX_DOCUMENT_BYTES:
            path = Path(posixpath.normpath(f"/{member.name.lstrip('/')}"))
            yield path, cast(Callable[[], BinaryIO], partial(archive.extractfile, member))


def _main_files(folder: Members) -> list[Path]:
    """The complete documents that no other includes, the main one first."""
    sources = [
        path
        for path in folder.paths
        if path.name.lower().endswith(_SOURCE_SUFFIXES) and not any(part.startswith(".") for part in path.parts)
    ]
    whole = [path for path in sources if not is_fragment(path, folder)] or sources
    parts = {path: included_files(path, folder) for path in whole}
    included = {part for path, files in parts.items() for part in files if part != path}
    mains = [path for path in whole if path not in included] or whole
    sizes = {}
    for path in mains:
        text = [folder.read(path), *(folder.read(part) for part in parts[path] if part.name.endswith(_SOURCE_SUFFIXES))]
        sizes[path] = (any(mark in one for one in text for mark in _ABSTRACT), sum(map(len, text)))
    return sorted(mains, key=lambda path: (*(-value for value in sizes[path]), str(path)))
