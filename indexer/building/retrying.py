"""Finds failed documents that can be read again: those whose file exists and whose doc_id is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import IndexMismatch
from engine.store.manifest import holds_index
from engine.store.presence import stored_failures
from indexer.reading.requests import Request, is_json_lines


@dataclass(frozen=True, slots=True)
class Retry:
    """The failures of an index: requests to read again, and the other failures with a reason each."""

    requests: list[Request] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)  # source and reason


def find_failed(index: Path) -> Retry:
    """Look up the documents that could not be indexed.

    Raises:
        IndexMismatch: there is no index.
    """
    if not holds_index(index):
        raise IndexMismatch(f"{index} holds no index; make one: longmatch index {index} PATH...")
    retry = Retry()
    for source, doc_id in stored_failures(index):
        reason = _obstacle(index, source, doc_id)
        if reason:
            retry.left_out.append((source, reason))
        else:
            retry.requests.append(Request(source, doc_id))
    return retry


def _obstacle(index: Path, source: str, doc_id: str) -> str:
    """Why a document cannot be read by itself; empty where it can."""
    file, _, line = source.rpartition(":")
    if line.isdecimal() and is_json_lines(file):
        if file == "stdin" or not Path(file).is_file():
            return "it is a line of a file that is no longer there; index that file again"
        return f"it is a line of {file}; index that file again, its unchanged lines are skipped: " + (
            f"longmatch index {index} {file}"
        )
    if not Path(source).is_file():
        return "it is no longer there; bring it back, or forget it by indexing its folder again with --prune"
    if not doc_id:
        return "its doc_id is not known; index its folder again"
    return ""
