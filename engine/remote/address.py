"""The address of a served index: http(s)://HOST:PORT. Opens no connection.

An address is accepted wherever the folder of an index is, so it is a `Path`; no file has its name.
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
        """False: no file has this name."""
        return False


def is_server(name: str | os.PathLike[str]) -> bool:
    """Whether a name is the address of an HTTP server rather than a folder."""
    return isinstance(name, ServerAddress) or _SCHEME.match(os.fspath(name)) is not None


def server_address(name: str | os.PathLike[str]) -> ServerAddress:
    """A name as an address, after `check_address`.

    Raises:
        IndexMismatch: the name is not a valid address.
    """
    found = ServerAddress(os.fspath(name))
    check_address(str(found))
    return found


def check_address(address: str) -> None:
    """Check the form of an address; no connection is opened.

    Raises:
        IndexMismatch: the scheme is not HTTP(S), the host is missing, the port is invalid, or there is a query, a
            fragment, a user name or an unprintable character.
    """
    try:
        parts = urlsplit(address)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_sound = False
    if not is_sound or parts.query or parts.fragment or parts.username is not None or not address.isprintable():
        raise IndexMismatch(f"{address!r} is no address of a server; give it as http://HOST:PORT or https://HOST:PORT")
