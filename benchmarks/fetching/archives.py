"""Files inside downloaded archives, read without unpacking to disk: tar, zip, Debian packages, plain folders.

Names are only compared, never used as paths to write to.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from engine.errors import EngineError

Member = tuple[str, bytes]  # its name inside the archive, and its bytes
_AR_MAGIC, _AR_HEADER = b"!<arch>\n", 60
_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz")
SUFFIXES = (*_TAR_SUFFIXES, ".zip", ".deb")


class FetchError(EngineError):
    """Raised when a source cannot be downloaded or read; names the file and the step that helps."""


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    """Stream the members of an archive or the files below a folder whose names are wanted.

    A member that ends with ".gz" is unpacked, and its name has no ".gz" then.

    Args:
        path: of a folder, or of an archive that ends with one of `SUFFIXES`.
        wanted: whether a name, without a final ".gz", is wanted.

    Raises:
        FetchError: the archive is damaged or of an unknown kind.
    """
    try:
        for name, read in _members(path):
            plain = name.removesuffix(".gz")
            if wanted(plain):
                data = read()
                yield plain, gzip.decompress(data) if plain != name else data
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise FetchError(f"{path} cannot be read as an archive ({error}); delete it and download it again") from error


def _members(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        yield from ((file.relative_to(path).as_posix(), file.read_bytes) for file in files)
    elif path.name.endswith(_TAR_SUFFIXES):
        with path.open("rb") as file:
            yield from _tar_members(file)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name, lambda name=name: archive.read(name)  # type: ignore[misc]
    elif path.suffix == ".deb":
        yield from _tar_members(io.BytesIO(_debian_data(path)))
    else:
        raise FetchError(f"{path} is neither a folder nor an archive that ends with {', '.join(SUFFIXES)}")


def _tar_members(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with tarfile.open(fileobj=file, mode="r:*") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content.read


def _debian_data(path: Path) -> bytes:
    """The member data.tar.* of a Debian package, which is an archive of ar."""
    data = path.read_bytes()
    place = len(_AR_MAGIC)
    if not data.startswith(_AR_MAGIC):
        raise FetchError(f"{path} is not a Debian package; download it again")
    while place + _AR_HEADER <= len(data):
        name = data[place : place + 16].decode("ascii", "replace").strip().rstrip("/")
        size = data[place + 48 : place + 58].strip()
        if not size.isdigit():
            break
        start = place + _AR_HEADER
        if name.startswith("data.tar"):
            return data[start : start + int(size)]
        place = start + int(size) + int(size) % 2
    raise FetchError(f"{path} holds no data.tar; download it again")
