"""The seal: checksum of a catalog that was closed cleanly, which shows a writer that all rows are intact.

While a writer is at work, and after one was killed, the seal contains "unsealed" and checksums of rows
(`engine.store.checks`) are used instead; the next writer that closes cleanly seals again. Readers compare only
the size of the file and checksums of rows, if there are any, so that opening an index does not read the whole catalog.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import xxhash
from sqlalchemy import Engine

from engine.errors import IndexDamaged
from engine.store.durable import Checksum, checksum, is_loss, write_durably

SEAL_SUFFIX = ".seal"


_UNSEALED = "unsealed"


def _seal_path(catalog: Path) -> Path:
    return catalog.with_name(catalog.name + SEAL_SUFFIX)


def break_seal(catalog: Path) -> None:
    """Record durably that the catalog is about to change; a writer does this before its first write."""
    write_durably(_seal_path(catalog), lambda path: _write_text(path, json.dumps(_UNSEALED)))


def is_unsealed(catalog: Path) -> bool:
    """True while a writer is at work, and after one was killed."""
    try:
        return bool(json.loads(_seal_path(catalog).read_text()) == _UNSEALED)
    except (OSError, ValueError):
        return False


def is_sealed(catalog: Path) -> bool:
    """True if a catalog was closed cleanly here, even if it is missing or damaged now."""
    try:
        return read_seal(catalog) is not None
    except IndexDamaged:
        return False


def seal(catalog: Path, engine: Engine) -> bool:
    """Move the write-ahead log into the catalog and write its checksum beside it.

    Returns:
        False if a reader still needs the log; the next writer seals then.
    """
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA busy_timeout=0")  # a reader may stay for hours
        busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            return False
    write_seal(catalog)
    return True


def write_seal(catalog: Path) -> None:
    """Write the checksum of the catalog as it is on disk."""
    sealed = checksum(catalog)
    text = json.dumps({**asdict(sealed), "check": _check_of(sealed)})
    write_durably(_seal_path(catalog), lambda path: _write_text(path, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text + "\n")


def _check_of(sealed: Checksum) -> str:
    return xxhash.xxh3_64_hexdigest(f"{sealed.size_bytes} {sealed.digest}".encode())


def read_seal(catalog: Path) -> Checksum | None:
    """The checksum of the catalog when it was sealed; None while it is unsealed.

    A seal holds a checksum of itself: a seal that can be read is correct, so if the
    catalog differs, the catalog is damaged.

    Raises:
        IndexDamaged: the seal is missing or damaged.
    """
    path = _seal_path(catalog)
    try:
        stored = json.loads(path.read_text())
        if stored == _UNSEALED:
            return None
        check = stored.pop("check")
        sealed = Checksum(**stored)
        if check != _check_of(sealed):
            raise ValueError(check)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, OSError) and not is_loss(error):
            raise
        raise IndexDamaged(
            f"{path} is missing or damaged, so {catalog.name} cannot be trusted; "
            "check it: longmatch upkeep verify INDEX"
        ) from error
    return sealed


def check_sealed_size(catalog: Path) -> Checksum | None:
    """Compare the size of a sealed catalog with its seal: all that a reader of single rows needs, see `checks`.

    Returns:
        The checksum of the catalog when it was sealed; None while it is unsealed.

    Raises:
        IndexDamaged: the catalog has another size, or its seal is not what was written.
    """
    expected = read_seal(catalog)
    if expected is not None and catalog.stat().st_size != expected.size_bytes:
        check_seal(catalog)
        return read_seal(catalog)  # a writer began or ended while we read
    return expected


def check_seal(catalog: Path) -> bool:
    """Compare a sealed catalog with its seal; an unsealed catalog passes, and the caller must compare its rows.

    Returns:
        Whether the catalog is sealed, so that every page is what was written.

    Raises:
        IndexDamaged: the catalog or its seal is not what was written.
    """
    expected = read_seal(catalog)
    if expected is None:
        return False
    try:
        found = checksum(catalog)
    except OSError as error:
        if not is_loss(error):
            raise
        raise IndexDamaged(f"{catalog} cannot be read ({error.strerror})") from error
    if found == expected:
        return True
    if read_seal(catalog) != expected:  # a writer began or ended while we read
        return check_seal(catalog)
    raise IndexDamaged(
        f"{catalog} has {found.size_bytes} bytes and checksum {found.digest[:12]}, sealed were "
        f"{expected.size_bytes} and {expected.digest[:12]}; check it: longmatch upkeep verify INDEX"
    )
