"""Finds the pairs of an index by blocks of documents; a killed run continues after its last block.

There are two passes. The first ranks the index against each document and keeps the best targets. The second scores
the missing directions: those from b to a, where b is among the best of a, but a is not among the best of b. So each
pair has both scores.

Letters in shapes: N documents of the index, E directed edges from a query to a target.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.errors import QueryError
from engine.extras import check_extra
from engine.index import Index
from engine.on_demand import BY_WORDS
from engine.pairs import CLUSTER_COLUMNS, PAIR_COLUMNS, Cluster, DocumentPair, cluster_rows
from engine.report.rows import as_cell
from engine.result import index_state
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.partition import Selection
from engine.search.query import Query
from engine.search.request import Mode
from engine.search.searcher import Searcher
from engine.store.lookup import check_fields
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
        """Check the ranges.

        Raises:
            QueryError: a value is out of its range.
        """
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
        index: opened; the pairs are those of its snapshot.
        settings: which pairs.
        journal: file for the finished blocks; deleted at the end. Without a journal, a run cannot be continued.
        progress: called after each block.
        log: called with one line if vectors are missing, and if a run continues.

    Raises:
        QueryError: the filter cannot be used, or the journal is of another index or other settings.
    """
    started = time.perf_counter()
    run = _Run(index, settings, progress or _silent)
    if run.lacks_vectors:
        log(f"some documents have no vectors: pairs are scored by words alone; add them: longmatch index {run.folder}")
    if journal is None:
        edges = run.edges(None)
    else:
        with Journal(journal, run.description) as kept:
            if kept.n_kept:
                log(f"continuing after {kept.n_kept:,} blocks of {journal}")
            edges = run.edges(kept)
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


class _Run:
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
        self._searcher: Searcher = index.searcher(_scoring(settings.mode, vectors=self.vectors))
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

    def edges(self, kept: Journal | None) -> Edges:
        """Both directions of all pairs."""
        best = self._blocks("ranked", self.positions, self._best, kept)
        wanted = missing_reverse(best, self._index.n_documents)
        sources = np.array([source for source, _ in wanted], np.int64)
        targets = dict(wanted)

        def reverse(block: Positions) -> Edges:
            asked = [(source, targets[source]) for source in block.tolist()]
            return given_edges(self._searcher, self._queries, asked)

        return join_edges([best, self._blocks("reversed", sources, reverse, kept)])

    def _best(self, block: Positions) -> Edges:
        top, least = self._settings.top, self._settings.least
        return best_edges(self._searcher, self._queries, block, self._selection, top=top, least=least)

    def _queries(self, positions: Positions) -> Sequence[Query]:
        return self._index.stored_queries(positions, vectors=self.vectors)

    def _blocks(
        self, what: str, positions: Positions, find: Callable[[Positions], Edges], kept: Journal | None
    ) -> Edges:
        found = []
        for number, first in enumerate(range(0, len(positions), BLOCK_DOCUMENTS)):
            block = positions[first : first + BLOCK_DOCUMENTS]
            edges = None if kept is None else kept.block(what, number)
            if edges is None:
                edges = find(block)
                if kept is not None:
                    kept.add(what, number, edges)
            found.append(edges)
            self._progress(what, first + len(block), len(positions))
        return join_edges(found)

    def pairs(self, edges: Edges) -> list[DocumentPair]:
        """The pairs of edges, of which each is there in both directions."""
        scores = {
            (query, target): score
            for query, target, score in zip(
                edges.queries.tolist(), edges.targets.tolist(), edges.scores.tolist(), strict=True
            )
        }
        involved = np.unique(edges.queries)
        listed = self._index.snapshot.titles()
        names, titles = ({one: listed[one][at] for one in involved.tolist()} for at in (0, 1))
        return [
            DocumentPair(names[one], names[other], score, scores[other, one], titles[one], titles[other])
            for (one, other), score in scores.items()
            if names[one] < names[other]
        ]


def _scoring(mode: str, *, vectors: bool) -> Scoring:
    if mode == Mode.CONTAINMENT:
        return CONTAINMENT if vectors else replace(CONTAINMENT, chunk_weight=0)
    return Scoring() if vectors else BY_WORDS


def _silent(_what: str, _n_done: int, _n_documents: int) -> None:
    pass


FORM = "longmatch-pairs/1"
_BEGINNING = json.dumps({"form": FORM})[:-1].encode()


class Journal:
    """A file that grows by a line for each block; deleted when the run is done."""

    def __init__(self, path: Path, description: Mapping[str, Any]) -> None:
        """Open a journal, or begin a new one. An incomplete last line is dropped.

        Args:
            path: the file.
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


def pairs_csv(pairs: Pairs) -> str:
    """A line for each pair, best first."""
    return _csv(PAIR_COLUMNS, pairs.rows())


def clusters_csv(clusters: Sequence[Cluster]) -> str:
    """A line for each document of a cluster, the largest cluster first."""
    return _csv(CLUSTER_COLUMNS, cluster_rows(clusters))


def _csv(columns: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows([as_cell(value) for value in row] for row in rows)
    return text.getvalue()


def check_parquet() -> None:
    """Whether Parquet can be written.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    check_extra("pyarrow", "Parquet", "pyarrow", "arrow")


def pairs_parquet(pairs: Pairs) -> bytes:
    """Pairs as Parquet, best first; mode, least score, top and certification are in the metadata of the file.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow
    from pyarrow import parquet

    types = {"score": pyarrow.float64(), "forward": pyarrow.float64(), "backward": pyarrow.float64()}
    columns = list(zip(*pairs.rows(), strict=True)) or [()] * len(PAIR_COLUMNS)
    arrays = [
        pyarrow.array(list(values), types.get(name, pyarrow.string()))
        for name, values in zip(PAIR_COLUMNS, columns, strict=True)
    ]
    described = {"mode": pairs.mode, "least": f"{pairs.least:g}", "top": str(pairs.top)}
    described["certified"] = str(pairs.is_certified).lower()
    table = pyarrow.table(arrays, names=list(PAIR_COLUMNS)).replace_schema_metadata(described)
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


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
    """The best targets of each of some documents, without the document itself; queries share passes over the index.

    Args:
        searcher: of the index.
        make: returns the queries of documents.
        sources: the documents to search with.
        selection: the documents that may be found.
        top: most targets of each document.
        least: lowest score of a target.
    """
    queries = list(zip(sources.tolist(), make(sources), strict=True))
    found = []
    for source, (targets, scores) in zip(sources.tolist(), searcher.tops(queries, selection, k=top), strict=True):
        kept = scores >= least
        found.append(Edges(np.full(int(kept.sum()), source), targets[kept], scores[kept]))
    return join_edges(found)


def given_edges(searcher: Searcher, make: MakeQueries, wanted: Sequence[tuple[int, Positions]]) -> Edges:
    """The scores of given targets.

    Args:
        searcher: of the index.
        make: returns the queries of documents.
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
