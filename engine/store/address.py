"""The place of an index that is not in a folder: the address of a server. Connects to nothing.

An address can be passed wherever the folder of an index can, so it is a `Path`; no file has its name. Only functions
that open an index distinguish the two.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PosixPath
from typing import Self
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from engine.errors import IndexMismatch
from engine.remote.address import is_server, server_address

POSTGRES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "longmatch"
_SECRETS = frozenset({"password", "sslpassword", "passfile"})
_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+)://", re.IGNORECASE)


class Address(PosixPath):
    """The address of an index in a PostgreSQL database."""

    url: str = ""  # as given, with its password

    @classmethod
    def of(cls, url: str) -> Self:
        """The address that a URL names.

        Raises:
            IndexMismatch: this program cannot open an index at that URL.
        """
        scheme = _SCHEME.match(url)
        if scheme is None or scheme["scheme"].lower() not in POSTGRES:
            raise IndexMismatch(
                f"{url} is no address of an index; name a folder, postgresql://HOST/DATABASE?schema=NAME, or http://HOST:PORT"
            )
        found = cls(without_secrets(url))
        found.url = url
        return found

    @property
    def name(self) -> str:
        """The schema that holds the index."""
        return self.schema

    @property
    def schema(self) -> str:
        """The schema that holds the index."""
        return dict(parse_qsl(urlsplit(self.url).query)).get("schema", DEFAULT_SCHEMA)

    @property
    def database(self) -> str:
        """The same URL without the schema, as PostgreSQL's own programs accept it."""
        parts = urlsplit(self.url)
        return _joined(parts, [pair for pair in parse_qsl(parts.query) if pair[0] != "schema"])

    def with_schema(self, schema: str) -> Address:
        """Another schema of the same database."""
        parts = urlsplit(self.database)
        return Address.of(_joined(parts, [*parse_qsl(parts.query), ("schema", schema)]))

    def with_deadline(self, seconds: float) -> Address:
        """The same index, with a limit on the time of each statement."""
        parts = urlsplit(self.url)
        limit = f"--statement_timeout={max(1, round(1000 * seconds))}"
        return Address.of(_joined(parts, [*parse_qsl(parts.query), ("options", limit)]))

    def exists(self) -> bool:
        """Always False: no file has this name."""
        return False

    def __str__(self) -> str:
        return without_secrets(self.url) if self.url else super().__str__()

    def __fspath__(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"Address.of({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Address.of, (self.url,)


def is_address(name: str) -> bool:
    """Whether a name is an address rather than a folder."""
    return _SCHEME.match(name) is not None


def index_place(place: str | os.PathLike[str]) -> Path:
    """The folder or the address that a name stands for: an `Address`, or a `ServerAddress` of HTTP.

    Raises:
        IndexMismatch: this program cannot open an index at that address.
    """
    if isinstance(place, Address):
        return place
    if is_server(place):
        return server_address(place)
    name = os.fspath(place)
    return Address.of(name) if is_address(name) else Path(name)


def has_secrets(url: str) -> bool:
    """Whether a URL holds a password."""
    return without_secrets(url) != _joined(urlsplit(url), parse_qsl(urlsplit(url).query))


def without_secrets(url: str) -> str:
    """A URL as messages show it: without its password."""
    parts = urlsplit(url)
    name, at, host = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=f"{name.partition(':')[0]}{at}{host}")
    return _joined(shown, [pair for pair in parse_qsl(parts.query) if pair[0] not in _SECRETS])


def _joined(parts: SplitResult, query: list[tuple[str, str]]) -> str:
    """A URL built from its parts; `urlunsplit` drops the two slashes in front of an empty host."""
    end = f"?{urlencode(query, safe='/')}" if query else ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}{end}"
