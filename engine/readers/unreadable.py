"""The value that replaces a document that could not be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that could not be read, and why; a bulk job records it and goes on."""

    source: str  # the file; with ":LINE" for a line of JSON lines
    reason: str  # for people; does not repeat the source
    doc_id: str = ""  # "" where it is not known
