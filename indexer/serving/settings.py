"""How an index is served: address, token and limits. Values, and the checks of them."""

import ipaddress
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import QueryError
from engine.search.partition import Placement
from indexer.reading.reader import ReadLimits

TOKEN_VARIABLE = "LONGMATCH_TOKEN"
ASSETS = "/assets/"  # where the files of the page are served
MAX_BYTES = 32 * 2**20
MOST_SECTIONS = 2_000  # of a document that a client sends
MOST_TOGETHER = 20  # further documents of one search, and as many to be unlike
MOST_CHARS = 4_000_000  # of its text: about a million tokens
MOST_REPLY_BYTES = 32 * 2**20
MOST_WORK_BYTES = 64 * 2**20  # that one request may take for pairs of sections
MOST_VALUES = 50_000  # in a body of JSON
_LEAST_TOKEN = 16  # characters
_TOKEN = re.compile(r"[\x21-\x7e]+")  # what a header can carry without quotes
_MAKE_TOKEN = "make one: python -c 'import secrets; print(secrets.token_urlsafe(32))' > token.txt"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How an index is served."""

    host: str = "127.0.0.1"
    port: int = 8321  # 0 lets the system choose
    token: str | None = field(default=None, repr=False)
    max_bytes: int = MAX_BYTES  # of the body of a request
    timeout: float = 120.0  # seconds for the body to arrive, and again for the response
    concurrency: int = 16  # requests that are worked on or wait for a thread
    threads: int = 4  # requests that are worked on at the same time
    store: bool = False  # whether vectors that are encoded for a query are committed to the index
    device: str | None = None
    shutdown: float = 30.0  # seconds for running requests to finish
    reload: float = 2.0  # seconds between two looks at the catalog
    log_file: Path | None = None  # file to which each search is appended
    read: ReadLimits = field(default_factory=ReadLimits)
    placement: Placement | None = None  # where partitions are searched; by default in this process


def is_loopback(host: str) -> bool:
    """Whether an address, or the host of a URL, reaches this machine alone."""
    name = host.strip().strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_exposure(settings: ServerSettings) -> None:
    """Check that an address which other machines can reach has a token.

    Raises:
        QueryError: other machines can reach the address, and no token is set.
    """
    if settings.token is None and not is_loopback(settings.host):
        raise QueryError(
            f"{settings.host} can be reached from other machines, and no token is set; pass --token-file FILE or set "
            f"{TOKEN_VARIABLE}, or serve this machine alone with --host 127.0.0.1; {_MAKE_TOKEN}"
        )


def read_token(file: Path | None) -> str | None:
    """The token of a file, else of the environment; None where neither is given.

    Raises:
        QueryError: the file cannot be read, or the token is too short or has characters that a header cannot carry.
    """
    if file is None:
        name, token = TOKEN_VARIABLE, os.environ.get(TOKEN_VARIABLE)
        if token is None:
            return None
    else:
        try:
            name, token = str(file), file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise QueryError(f"the token cannot be read from {file} ({error}); {_MAKE_TOKEN}") from error
    token = token.strip()
    if len(token) < _LEAST_TOKEN or not _TOKEN.fullmatch(token):
        raise QueryError(
            f"the token in {name} has {len(token)} characters; use {_LEAST_TOKEN} or more ASCII characters without "
            f"blanks; {_MAKE_TOKEN}"
        )
    return token
