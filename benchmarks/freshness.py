"""Finds records that are older than the code that they measure, by the digests of that code in each record.

A record is stale when the present digest of a module that its kind measures (`MEASURED`) is not the digest in the
record. Docstrings, comments and imports do not count, and no git history is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.code_digests import NO_CODE, digests
from benchmarks.measured import modules_of
from benchmarks.record_file import CHECKOUT
from benchmarks.records import Record
from benchmarks.runs import Run

NOTE = "Stale: "  # begins the line below a table
_SHOWN = 8  # files and folders in that line


@dataclass(frozen=True)
class Age:
    """The changes to the code of a record since it was measured."""

    name: str  # of the record
    commit: str  # ten digits; "" where the record has none
    is_known: bool  # the record has digests of its code
    changed: tuple[str, ...]  # those of the declared files and folders that changed

    @property
    def is_stale(self) -> bool:
        """Whether the record should be measured again."""
        return bool(self.changed) or not self.is_known


def age_of(record: Record, checkout: Path = CHECKOUT) -> Age:
    """Compare the declared code of a record with a checkout."""
    code, name, commit = record.origin.code, record.name, record.origin.commit[:10]
    if not code:
        return Age(name, commit, False, ())
    now = digests(modules_of(record.kind, record.system if isinstance(record, Run) else ""), checkout)
    known = set(code.values()) - {NO_CODE}  # code that only moved has its digest under another name
    changed = (path for path, digest in now.items() if code.get(path) != digest and digest not in known)
    return Age(name, commit, True, tuple(changed))


def stale_note(ages: Sequence[Age]) -> str:
    """The line below a table that names stale records; "" where all records are fresh."""
    stale = [age for age in ages if age.is_stale]
    if not stale:
        return ""
    parts = []
    if changed := sorted({path for age in stale for path in age.changed}):
        n_changed = sum(bool(age.changed) for age in stale)
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        names = ", ".join(f"`{path}`" for path in changed[:_SHOWN]) + more
        parts.append(f"{n_changed} of {len(ages)} records measured before the code of {names} changed")
    if n_unknown := sum(not age.is_known for age in stale):
        parts.append(f"{n_unknown} of {len(ages)} records without digests of their code")
    return f"{NOTE}{'; '.join(parts)}."
