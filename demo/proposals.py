"""Proposals as values: reading the data folder and undoing its masks. Nothing here knows an output format."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

MASK = "[CITE]"
SERIES = {"pep": "Python Enhancement Proposals", "eip": "Ethereum Improvement Proposals"}


@dataclass(frozen=True)
class Section:
    """A heading and the text below it, paragraphs split by empty lines."""

    heading: str
    text: str


@dataclass(frozen=True)
class Proposal:
    """One PEP or EIP, citations in place."""

    id: str  # the data's own, "pep484"
    title: str
    family: str  # "pep" or "eip"
    number: int
    status: str
    kind: str  # the proposal's own "Type", such as "Standards Track"
    created: str  # ISO date
    sections: tuple[Section, ...]

    @property
    def name(self) -> str:
        """File name without ending, "pep-0484"."""
        return f"{self.family}-{self.number:04d}"

    @property
    def label(self) -> str:
        """Its name in citations, "PEP 484" or "EIP-1559"."""
        return f"PEP {self.number}" if self.family == "pep" else f"EIP-{self.number}"

    @property
    def series(self) -> str:
        """The series it appeared in."""
        return SERIES[self.family]

    @property
    def byline(self) -> str:
        """The line below the title in PDF and DOCX files."""
        return f"{self.label}, {self.status}, {self.kind}, created {self.created}"

    @property
    def metadata(self) -> dict[str, str | int]:
        """The metadata to write, in formats that hold metadata."""
        return {
            "family": self.family,
            "number": self.number,
            "status": self.status,
            "type": self.kind,
            "created": self.created,
        }


def read_proposals(data: Path, ids: set[str]) -> dict[str, Proposal]:
    """Read the proposals named in `ids` from the data folder, unmasked.

    Raises:
        ValueError: an id is missing, or a mask is left over.
    """
    originals = {row["id"]: row["masked"] for row in _rows(data / "unmask.jsonl.gz") if row["id"] in ids}
    rows = (row for row in _rows(data / "corpus.jsonl.gz") if row["id"] in ids)
    found = {row["id"]: _proposal(row, originals.get(row["id"])) for row in rows}
    if missing := ids - found.keys():
        raise ValueError(f"{data} has no {', '.join(sorted(missing))}; choose others in selection.py")
    return found


def read_citations(data: Path) -> set[tuple[str, str]]:
    """Read the pairs (citing id, cited id) from the data folder."""
    with (data / "qrels.tsv").open(encoding="utf-8", newline="") as lines:
        return {(row["query_id"], row["doc_id"]) for row in csv.DictReader(lines, delimiter="\t")}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _proposal(row: dict[str, Any], originals: list[list[list[str]]] | None) -> Proposal:
    meta = row["meta"]
    originals = originals or [[[], []] for _ in row["sections"]]
    sections = tuple(
        Section(_unmask(section["heading"], headings), _unmask(section["text"], texts))
        for section, (headings, texts) in zip(row["sections"], originals, strict=True)
    )
    if MASK in row["title"]:
        raise ValueError(f"the title of {row['id']} is masked and has no original; choose another in selection.py")
    return Proposal(
        id=row["id"],
        title=row["title"],
        family=meta["family"],
        number=meta["number"],
        status=meta["status"],
        kind=meta["type"],
        created=_iso(meta["created"]),
        sections=sections,
    )


def _unmask(text: str, originals: list[str]) -> str:
    """Put the original citations back, one per mask, in order."""
    between = text.split(MASK)
    if len(between) != len(originals) + 1:
        raise ValueError(f"{len(between) - 1} masks but {len(originals)} originals in {text[:60]!r}")
    return "".join(part + original for part, original in zip(between, [*originals, ""], strict=True))


def _iso(date: str) -> str:
    return date if date[:4].isdigit() else datetime.strptime(date, "%d-%b-%Y").date().isoformat()
