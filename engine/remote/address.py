"""Where an index is that a server answers for: http(s)://HOST:PORT. Connects to nothing.

An address goes wherever the folder of an index goes, so it is a `Path`; no file has its name.
"""

from __future__ import annotations

import os
import re
from pathlib import PosixPath
from urllib.parse import urlsplit

from engine.errors import IndexMismatch

_SCHEME = re.compile(r"https?:/+", re.IGNORECASE)


class ServerAddress(PosixPath):
    """The address of a server as a path that keeps its two slashes."""

    def __str__(self) -> str:
        return _SCHEME.sub(lambda found: found[0].rstrip("/").lower() + "//", super().__str__(), count=1)

    def __fspath__(self) -> str:
        return str(self)

    def exists(self) -> bool:
        """Never: no file has this name."""
        return False


def is_server(name: str | os.PathLike[str]) -> bool:
    """Whether a name is the address of a server of HTTP rather than a folder."""
    return isinstance(name, ServerAddress) or _SCHEME.match(os.fspath(name)) is not None


def server_address(name: str | os.PathLike[str]) -> ServerAddress:
    """The address that a name stands for.

    Raises:
        IndexMismatch: it begins like an address and is none.
    """
    found = ServerAddress(os.fspath(name))
    check_address(str(found))
    return found


def check_address(address: str) -> None:
    """Whether a server can be reached under an address.

    Raises:
        IndexMismatch: it has no host, or something that no request needs.
    """
    try:
        parts = urlsplit(address)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_sound = False
    if not is_sound or parts.query or parts.fragment or parts.username is not None or not address.isprintable():
        raise IndexMismatch(f"{address!r} is no address of a server; give it as http://HOST:PORT or https://HOST:PORT")
