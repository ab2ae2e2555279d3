"""Finds the pairs of an index by blocks of documents; a killed run continues after its last block.

There are two passes. The first ranks the index against each document and keeps the best targets. The second scores
the missing directions: those from b to a, where b is among the best of a, but a is not among the best of b. So each
pair has both scores.

Letters in shapes: N documents of the index, E directed edges from a query to a target.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.errors import QueryError, command_line
from engine.index import Index
from engine.result import DocumentPair, index_state
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.partition import Selection
from engine.search.query import Query
from engine.search.request import Mode
from engine.store.partitioned import check_fields
from engine.store.snapshot import Positions
from engine.views import Pairs

# Called with the name of the pass ("ranked", "reversed"), the number of finished documents, and their total.
Progress: TypeAlias = Callable[[str, int, int], None]

BLOCK_DOCUMENTS = 256  # documents of a block, the most work that a kill can lose
LEAST = 0.5
TOP = 10


@dataclass(frozen=True, slots=True)
class PairSettings:
    """Which pairs are wanted."""

    least: float = LEAST  # score of a pair
    top: int = TOP  # targets of each document that can make a pair
    mode: str = Mode.SIMILAR
    where: str | None = None  # metadata filter, for both documents

    def __post_init__(self) -> None:
        if not 0 < self.least <= 1:
            raise QueryError(f"least is {self.least:g}; a pair needs a score above 0 and at most 1")
        if self.top < 1:
            raise QueryError(f"top is {self.top}; it must be at least 1")
        if self.mode not in (Mode.SIMILAR, Mode.CONTAINMENT):
            raise QueryError(f"mode is {self.mode!r:.40}; it must be one of: {Mode.SIMILAR}, {Mode.CONTAINMENT}")


def find_pairs(
    index: Index,
    settings: PairSettings,
    *,
    journal: Path | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> Pairs:
    """Find the pairs of an index.

    Documents are not encoded: if one has no vectors, all pairs are scored by words alone.

    Args:
        journal: file for the finished blocks; deleted at the end. Without a journal, a run cannot be continued.

    Raises:
        QueryError: the filter cannot be used, or the journal is of another index or other settings.
    """
    started = time.perf_counter()
    run = _Pass(index, settings, progress or (lambda _what, _n_done, _n_documents: None))
    if run.lacks_vectors:
        add = command_line("index", run.folder)
        log(f"some documents have no vectors: pairs are scored by words alone; add them: {add}")
    with nullcontext() if journal is None else Journal(journal, run.description) as blocks:
        if blocks is not None and blocks.n_kept:
            log(f"continuing after {blocks.n_kept:,} blocks of {journal}")
        edges = run.edges(blocks)
    pairs = run.pairs(edges)
    return Pairs(
        pairs=tuple(sorted(pairs, key=lambda pair: (-pair.score, pair.first, pair.second))),
        n_documents=len(run.positions),
        least=settings.least,
        top=settings.top,
        mode=str(settings.mode),
        is_certified=run.is_certified,
        by_words=not run.vectors,
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, slots=True)
class Edges:
    """Scores of targets for queries, all documents of one index."""

    queries: Positions  # (E,)
    targets: Positions  # (E,)
    scores: NDArray[np.float64]  # (E,)


_COLUMNS: dict[str, type[Any]] = {"queries": np.int64, "targets": np.int64, "scores": np.float64}


class _Pass:
    """One run over one snapshot."""

    def __init__(self, index: Index, settings: PairSettings, progress: Progress) -> None:
        snapshot = index.snapshot
        if settings.where is not None:
            check_fields(snapshot, settings.where)
        is_complete = snapshot.is_complete
        self.folder = snapshot.folder
        self.vectors = snapshot.width > 0 and is_complete
        self.lacks_vectors = snapshot.width > 0 and not is_complete
        self._index = index
        self._settings = settings
        self._progress = progress
        scoring = CONTAINMENT if settings.mode == Mode.CONTAINMENT else Scoring()
        self._searcher = index.searcher(scoring if self.vectors else replace(scoring, chunk_weight=0))
        self._selection = Selection(settings.where)
        self._survey = self._searcher.survey(self._selection)
        self.positions = self._survey.positions

    @property
    def is_certified(self) -> bool:
        """Whether no candidates were chosen, and no vectors are missing."""
        return self._survey.is_exhaustive and not self.lacks_vectors

    @property
    def description(self) -> dict[str, Any]:
        """What the blocks depend on."""
        state = index_state(self._index.snapshot)
        return {
            "index": state.fingerprint,
            "generation": state.generation,
            "vectors": self.vectors,
            "block": BLOCK_DOCUMENTS,
            **asdict(self._settings),
        }

    def edges(self, journal: Journal | None) -> Edges:
        """Both directions of all pairs."""
        best = self._blocks("ranked", self.positions, self.best, journal)
        targets = missing_reverse(best, self._index.n_documents)

        def reverse(block: Positions) -> Edges:
            parts = []
            for source, query in zip(block.tolist(), self._queries(block), strict=True):
                wanted = targets[source]
                parts.append(Edges(np.full(len(wanted), source), wanted, self._searcher.scores_of(query, wanted)))
            return join_edges(parts)

        return join_edges([best, self._blocks("reversed", np.array(list(targets), np.int64), reverse, journal)])

    def best(self, sources: Positions) -> Edges:
        """The best targets of some documents, without the documents themselves; queries share passes over the index."""
        queries = list(zip(sources.tolist(), self._queries(sources), strict=True))
        best = []
        tops = self._searcher.tops(queries, self._selection, k=self._settings.top)
        for (source, _), (targets, scores) in zip(queries, tops, strict=True):
            is_pair = scores >= self._settings.least
            best.append(Edges(np.full(int(is_pair.sum()), source), targets[is_pair], scores[is_pair]))
        return join_edges(best)

    def _queries(self, positions: Positions) -> Sequence[Query]:
        return self._index.stored_queries(positions, vectors=self.vectors)

    def _blocks(
        self, what: str, positions: Positions, find: Callable[[Positions], Edges], journal: Journal | None
    ) -> Edges:
        found = []
        for number, first in enumerate(range(0, len(positions), BLOCK_DOCUMENTS)):
            block = positions[first : first + BLOCK_DOCUMENTS]
            edges = None if journal is None else journal.block(what, number)
            if edges is None:
                edges = find(block)
                if journal is not None:
                    journal.add(what, number, edges)
            found.append(edges)
            self._progress(what, first + len(block), len(positions))
        return join_edges(found)

    def pairs(self, edges: Edges) -> list[DocumentPair]:
        """The pairs of edges, of which each is there in both directions."""
        ends = zip(edges.queries.tolist(), edges.targets.tolist(), strict=True)
        scores = dict(zip(ends, edges.scores.tolist(), strict=True))
        involved = np.unique(edges.queries)
        listed = self._index.snapshot.titles()
        names, titles = ({one: listed[one][at] for one in involved.tolist()} for at in (0, 1))
        return [
            DocumentPair(names[one], names[other], score, scores[other, one], titles[one], titles[other])
            for (one, other), score in scores.items()
            if names[one] < names[other]
        ]


def join_edges(parts: Sequence[Edges]) -> Edges:
    """Concatenate edges."""
    empty = ((name, np.empty(0, kind)) for name, kind in _COLUMNS.items())
    return Edges(*(np.concatenate([none, *(getattr(part, name) for part in parts)]) for name, none in empty))


def missing_reverse(edges: Edges, n_documents: int) -> dict[int, Positions]:
    """The missing reverses of edges: the targets of documents to search with."""
    there = edges.queries * n_documents + edges.targets
    turned = edges.targets * n_documents + edges.queries
    left = np.setdiff1d(turned, there)
    sources, counts = np.unique(left // n_documents, return_counts=True)
    ends = np.cumsum(counts)
    targets = left % n_documents
    return dict(zip(sources.tolist(), np.split(targets, ends[:-1]), strict=False))


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
                columns = (np.array(line[name], kind) for name, kind in _COLUMNS.items())
                self._blocks[line["what"], line["number"]] = Edges(*columns)
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
        columns = {name: getattr(edges, name).tolist() for name in _COLUMNS}
        self._write({"what": what, "number": number, **columns})

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
