"""One short checksum over several files, for the names of datasets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def files_checksum(paths: Iterable[Path]) -> str:
    """First 12 hex digits of the SHA-256 over the files in their order, each one hashed with its name."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
