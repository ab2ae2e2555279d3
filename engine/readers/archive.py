"""Reads members of zip files in memory: never more than the limits, and nothing outside of the archive."""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib

from engine.errors import DocumentError
from engine.readers.encoding import MAX_CONTAINER_BYTES
from engine.text.cleaning import MAX_DOCUMENT_BYTES, too_large


class Archive:
    """A zip file; the names of members are compared, never used as paths on this machine."""

    def __init__(self, data: bytes, form: str, max_bytes: int | None = None) -> None:
        """Open it; `form` is the format in messages ("EPUB").

        Raises:
            DocumentError: not a zip file, or one that unpacks to more than `MAX_CONTAINER_BYTES`.
        """
        self._form = form
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise DocumentError(f"it is not a whole {form} file ({error}); save it again") from error
        self._sizes = {member.filename: member.file_size for member in self._zip.infolist()}
        size = sum(member.file_size for member in self._zip.infolist())
        limit = MAX_CONTAINER_BYTES if max_bytes is None else max_bytes
        if size > limit:
            raise too_large("unpacked file", f"{size:,}", limit)

    def __contains__(self, name: str) -> bool:
        return name in self._sizes

    def size_of(self, suffixes: tuple[str, ...]) -> int:
        """Bytes of the members with one of the suffixes, unpacked."""
        return sum(size for name, size in self._sizes.items() if name.endswith(suffixes))

    def read(self, name: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        """The bytes of a member.

        Raises:
            DocumentError: the member is missing, damaged, encrypted, or over the limit.
        """
        if name not in self._sizes:
            raise DocumentError(f"it has no {name}; save it as {self._form}")
        if self._sizes[name] > limit:
            raise too_large(f"part {name}", f"{self._sizes[name]:,}", limit)
        try:
            return self._zip.read(name)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise DocumentError(f"it is a damaged {self._form} file ({error}); save it again") from error
        except (RuntimeError, NotImplementedError) as error:
            raise DocumentError(f"it is encrypted or packed in an unknown way ({error}); save it again") from error


def member_name(href: str, folder: str) -> str:
    """The name of the member that a link inside `folder` of an archive refers to."""
    return posixpath.normpath(posixpath.join(folder, href.partition("#")[0]))
