"""What growing and publishing an index took, kept beside it for when it is measured again and all is done already."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.peak import Memory
from benchmarks.record_file import rebuild

NOTES_SUFFIX = ".costs.json"


@dataclass(frozen=True)
class Noted:
    """What one step took."""

    seconds: float
    memory: Memory


def noted(folder: Path, step: str) -> Noted | None:
    """What a step took when it was last done; None if it never was."""
    known = _read(folder).get(step)
    return None if known is None else rebuild(Noted, known)


def note(folder: Path, step: str, taken: Noted) -> Noted:
    """Keep what a step took, in place of what was known."""
    known = {**_read(folder), step: asdict(taken)}
    _path(folder).write_text(json.dumps(known), "utf-8")
    return taken


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    path = _path(folder)
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def _path(folder: Path) -> Path:
    return folder.with_name(folder.name + NOTES_SUFFIX)
