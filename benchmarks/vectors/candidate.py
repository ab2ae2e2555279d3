"""What is measured: an index type of some library, the settings it is searched with, and the interface behind both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from engine.encoders.encoder import Vectors
from engine.store.ann import Ids


class Library(StrEnum):
    """Whose index it is."""

    LONGMATCH = "longmatch"
    FAISS = "faiss"
    HNSWLIB = "hnswlib"
    USEARCH = "usearch"


@dataclass(frozen=True)
class Candidate:
    """An index type, and the settings that it is searched with, one after the other."""

    library: Library
    factory: str  # FAISS's own string, or the like: links of a node, width of the search that builds, precision
    settings: tuple[str, ...]  # as FAISS writes them: "nprobe=8"; "" where there is nothing to set

    @property
    def name(self) -> str:
        """For people, and to name a file."""
        return f"{self.library} {self.factory}"


class VectorIndex(Protocol):
    """An index over rows, numbered from 0 as they come."""

    @property
    def is_rescored(self) -> bool:
        """Whether similarities of what it finds are to be read from the stored rows, as our search does."""

    @property
    def search_width(self) -> int | None:
        """How widely a graph is searched, or further where more is asked for; None for a type that is no graph."""

    def build(self, rows: Vectors) -> None:
        """Take in (C, D) unit rows, once."""

    def set(self, setting: str) -> None:
        """Search with this setting from now on."""

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        """(I, K) rows and similarities, best first, K at most `k`; row -1 where there were fewer."""

    def write(self, path: Path) -> None:
        """Leave all that a search needs in one file; what is rescored needs the rows beside it."""


def value_of(setting: str) -> int:
    """The number in "nprobe=8"."""
    return int(setting.rpartition("=")[2])
