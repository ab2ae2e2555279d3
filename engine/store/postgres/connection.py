"""Connections to the schema of an index, and errors of the server as errors of this program. Reads no rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from engine.errors import BudgetExceeded, EngineError, IndexMismatch, MissingExtra, StorageError
from engine.store.address import Address

try:
    import psycopg
    from psycopg import sql
    from psycopg.types.json import set_json_dumps, set_json_loads
except ImportError as error:  # the package, or libpq beneath it
    raise MissingExtra("an index in PostgreSQL", "psycopg", "postgres") from error

Session = psycopg.Connection[tuple[object, ...]]
_PATH = """
SELECT set_config('search_path', concat_ws(', ', quote_ident(%s),
    (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
     WHERE extname = 'vector'), current_setting('search_path')), false)
"""
CONNECT_SECONDS = 10
_NEXT_STEPS = {  # by the class of the error, the first two characters of its code
    "22": "the tables are not those that this program made: copy the index there again",
    "23": "the tables are not those that this program made: copy the index there again",
    "28": "check user and password of the address, and pg_hba.conf of the server",
    "3D": "make the database first: createdb NAME",
    "42": "ask the owner of the database for the right: GRANT ... ON SCHEMA ... TO ...",
    "57": "the server ended the connection: run the command again",
}
_FULL = ("53100", "53200")  # disk and memory
_OTHERWISE = "check that the server runs and that the address is right, then run the command again"


def connect(address: Address) -> Session:
    """Open a session in the schema of an index, where each statement is its own transaction until one is begun.

    Raises:
        StorageError: the server does not answer, or refuses.
    """
    with server_faults(address):
        session: Session = psycopg.connect(address.database, autocommit=True, connect_timeout=CONNECT_SECONDS)
        set_path(session, address)
    set_json_loads(_as_text, session)
    set_json_dumps(partial(json.dumps, ensure_ascii=False), session)  # keys are compared as they are written
    return session


def set_path(session: Session, address: Address) -> None:
    """Set the search path: first the schema of the index, then the schema in which pgvector is installed."""
    session.execute(_PATH, [address.schema])


def _as_text(raw: str | bytes) -> str:
    """JSON as it was stored; callers that need the value parse it."""
    return raw if isinstance(raw, str) else raw.decode()


def has_tables(session: Session, address: Address) -> bool:
    """Whether the schema exists and holds an index."""
    name = sql.SQL("{}.{}").format(sql.Identifier(address.schema), sql.Identifier("settings")).as_string(session)
    row = session.execute("SELECT to_regclass(%s)", [name]).fetchone()
    return row is not None and row[0] is not None


def holds_tables(address: Address) -> bool:
    """Whether an address holds an index.

    Raises:
        StorageError: the server does not answer, or refuses.
    """
    with server_faults(address), connect(address) as session:
        return has_tables(session, address)


def check_tables(session: Session, address: Address) -> None:
    """Check that the schema holds an index.

    Raises:
        IndexMismatch: it does not.
    """
    if not has_tables(session, address):
        raise IndexMismatch(
            f"{address} holds no index; copy one there: longmatch partition INDEX {str(address)!r} -p 1, or make one: "
            f"longmatch index {str(address)!r} PATH..."
        )


@contextmanager
def server_faults(address: Address) -> Iterator[None]:
    """Raise errors of the server and of the connection as errors of this program."""
    try:
        yield
    except psycopg.Error as error:
        raise _named(error, address) from error


def _named(error: psycopg.Error, address: Address) -> EngineError:
    code = error.sqlstate or ""
    reason = " ".join(str(error).split())
    if code in _FULL:
        return BudgetExceeded(f"{address}: {reason}; make room on the server: what was committed is safe")
    return StorageError(f"{address}: {reason}; {_NEXT_STEPS.get(code[:2], _OTHERWISE)}")
