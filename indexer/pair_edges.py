"""Directed edges from queries to targets of one index, found by search, and the journal that keeps those of a run.

Letters in shapes: N documents of the index, E directed edges from a query to a target.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import QueryError
from engine.search.partition import Selection
from engine.search.query import Query
from engine.search.searcher import Searcher
from engine.store.snapshot import Positions

MakeQueries = Callable[[Positions], Sequence[Query]]


@dataclass(frozen=True, slots=True)
class Edges:
    """Scores of targets for queries, all documents of one index."""

    queries: Positions  # (E,)
    targets: Positions  # (E,)
    scores: NDArray[np.float64]  # (E,)


def best_edges(
    searcher: Searcher, make: MakeQueries, sources: Positions, selection: Selection, *, top: int, least: float
) -> Edges:
    """The best targets of each of some documents, without the document itself; queries share passes over the index."""
    queries = list(zip(sources.tolist(), make(sources), strict=True))
    found = []
    for source, (targets, scores) in zip(sources.tolist(), searcher.tops(queries, selection, k=top), strict=True):
        kept = scores >= least
        found.append(Edges(np.full(int(kept.sum()), source), targets[kept], scores[kept]))
    return join_edges(found)


def given_edges(searcher: Searcher, make: MakeQueries, wanted: Sequence[tuple[int, Positions]]) -> Edges:
    """The scores of given targets.

    Args:
        wanted: documents to search with, each with its targets.
    """
    queries = make(np.array([source for source, _ in wanted], np.int64))
    return join_edges(
        [
            Edges(np.full(len(targets), source), targets, searcher.scores_of(query, targets))
            for (source, targets), query in zip(wanted, queries, strict=True)
        ]
    )


def join_edges(parts: Sequence[Edges]) -> Edges:
    """Concatenate edges."""
    return Edges(
        np.concatenate([np.empty(0, np.int64), *(part.queries for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.targets for part in parts)]),
        np.concatenate([np.empty(0), *(part.scores for part in parts)]),
    )


def missing_reverse(edges: Edges, n_documents: int) -> list[tuple[int, Positions]]:
    """The missing reverses of edges: documents to search with, each with its targets."""
    there = edges.queries * n_documents + edges.targets
    turned = edges.targets * n_documents + edges.queries
    left = np.setdiff1d(turned, there)
    sources, counts = np.unique(left // n_documents, return_counts=True)
    ends = np.cumsum(counts)
    targets = left % n_documents
    return [
        (source, targets[start:end]) for source, start, end in zip(sources.tolist(), ends - counts, ends, strict=True)
    ]


FORM = "longmatch-pairs/1"
_BEGINNING = json.dumps({"form": FORM})[:-1].encode()


class Journal:
    """A file that grows by a line for each block; deleted when the run is done."""

    def __init__(self, path: Path, description: Mapping[str, Any]) -> None:
        """Open a journal, or begin a new one. An incomplete last line is dropped.

        Args:
            description: settings and index state that the blocks depend on.

        Raises:
            QueryError: the file is not a journal, is damaged, or belongs to a run with another description.
        """
        self._path = path
        self._blocks: dict[tuple[str, int], Edges] = {}
        content = path.read_bytes() if path.exists() else b""
        if not content.startswith(_BEGINNING[: len(content)]):
            raise QueryError(f"{path} is no journal of pairs; delete it, or name another output")
        whole = content[: content.rfind(b"\n") + 1]
        if whole:
            self._read(whole, description)
        self._file = path.open("r+b" if path.exists() else "xb")
        self._file.truncate(len(whole))
        self._file.seek(len(whole))
        if not whole:
            self._write({"form": FORM, **description})

    def _read(self, content: bytes, description: Mapping[str, Any]) -> None:
        try:
            first, *lines = (json.loads(line) for line in content.splitlines())
            for line in lines:
                queries, targets, scores = line["queries"], line["targets"], line["scores"]
                edges = Edges(np.array(queries, np.int64), np.array(targets, np.int64), np.array(scores, np.float64))
                self._blocks[line["what"], line["number"]] = edges
        except (ValueError, KeyError, TypeError) as error:
            raise QueryError(f"{self._path} is damaged; delete it to begin again, or name another output") from error
        if first != {"form": FORM, **description}:
            differing = ", ".join(name for name in description if first.get(name) != description[name])
            raise QueryError(
                f"{self._path} is of a run with another {differing}; delete it to begin again, or name another output"
            )

    @property
    def n_kept(self) -> int:
        """Blocks of an earlier run."""
        return len(self._blocks)

    def block(self, what: str, number: int) -> Edges | None:
        """A block of an earlier run; None for one that is not done."""
        return self._blocks.get((what, number))

    def add(self, what: str, number: int, edges: Edges) -> None:
        """Keep a block, durably."""
        self._write(
            {
                "what": what,
                "number": number,
                "queries": edges.queries.tolist(),
                "targets": edges.targets.tolist(),
                "scores": edges.scores.tolist(),
            }
        )

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, which stays for the next run unless this one is done."""
        self._file.close()
        if kind is None:
            self._path.unlink()
