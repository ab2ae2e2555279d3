"""The interface of search to a store: ranks the documents of one partition, then shows hits; rankings as one.

A search takes two rounds. In the first, each partition ranks its own documents for a query that was prepared once,
from the reference that all share. In the second, the partitions that own the hits show them. Searches with many
queries use other rounds: `survey` lists the documents, `tops` ranks them for several queries, `exact` scores given
documents. An index that is not partitioned is one partition.

All partitions use one reference, so their scores are comparable. Partitions hold different documents, and
their rankings do not depend on the number of documents requested; neither does the merged ranking.

Letters in shapes: R documents.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.scoring.evidence import Scoring
from engine.search.query import Prepared
from engine.search.request import Request
from engine.search.scorer import Exact, join_exact
from engine.store.snapshot import IndexSnapshot, Positions
from engine.text.document import Document
from engine.text.spans import Coverage


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents that a search may find, and whether it scores all of them."""

    where: str | None = None  # metadata filter, see `engine.store.where`
    without: tuple[str, ...] = ()  # doc_ids that are left out; unknown ones are ignored
    exact: bool = False  # score every document, even if there is an approximate index

    @classmethod
    def of(cls, request: Request) -> Selection:
        """The documents that a request searches."""
        return cls(request.filter, request.without, request.exact)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Documents in their order, with their doc_ids, which order equal scores."""

    exact: Exact  # R documents by falling score, equal ones by doc_id, within each tier of candidates
    doc_ids: tuple[str, ...]  # (R,)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The best documents of one partition, and counts of its documents."""

    best: Ranked
    n_found: int  # documents with a score above 0
    n_evident: int  # documents with a chunk above its threshold
    n_searched: int  # documents that pass the selection
    is_exact: bool  # every document that passes the selection was scored
    is_complete: bool  # every document that passes the selection has vectors, or the index is one of words alone


@dataclass(frozen=True, slots=True)
class Survey:
    """The documents of one partition that a search may find."""

    positions: Positions  # (R,) rising
    is_exhaustive: bool  # a search scores every one of them
    is_complete: bool  # every one of them has vectors, or the index is one of words alone


@dataclass(frozen=True, slots=True)
class Shown:
    """A document as a hit shows it."""

    document: Document
    coverage: Coverage
    spans: NDArray[np.int32]  # (C, 4) section, start, stop and tokens of its chunks
    has_vectors: bool
    bits: NDArray[np.uint8]  # (A,) kinds of its sections, see `engine.text.section_kinds`


class Partition(Protocol):
    """Documents that are searched together with those of other partitions, by one scoring."""

    @property
    def n_documents(self) -> int:
        """Number of documents; their positions are 0 to `n_documents` - 1."""

    def rank(self, prepared: Prepared, selection: Selection, n_most: int) -> Ranks:
        """Rank the documents of the partition.

        The first n documents do not depend on `n_most`.

        Raises:
            QueryError: the filter does not parse.
        """

    def survey(self, selection: Selection) -> Survey:
        """The documents that pass a selection; raises the errors of `rank`."""

    def tops(self, queries: Sequence[tuple[int, Prepared]], selection: Selection, n_most: int) -> list[Ranked]:
        """Rank all documents for each of several queries, in one pass over them; raises the errors of `rank`.

        Args:
            queries: each with the position that it leaves out, or a position outside of the partition for none.
        """

    def exact(self, prepared: Prepared, positions: Positions) -> Exact:
        """The scores of documents at some positions (R,), in that order, also of those with a score of 0."""

    def show(self, positions: Positions) -> Sequence[Shown]:
        """The documents at some positions (R,), in that order."""


class Placement(Protocol):
    """Where the partitions of an index are searched, other than in this process."""

    def partitions(self, snapshots: Sequence[IndexSnapshot], scoring: Scoring) -> Sequence[Partition]:
        """The partitions of an index."""


def merged(parts: Sequence[Ranked], bases: NDArray[np.int64], n_most: int) -> Ranked:
    """The ranking of all partitions: by falling score, equal ones by doc_id.

    Args:
        bases: the position of the first document of each partition among those of all.

    Returns:
        R documents, at most `n_most`, at their positions among those of all.
    """
    moved = [
        replace(part.exact, positions=part.exact.positions + base)
        for part, base in zip(parts, bases.tolist(), strict=True)
    ]
    doc_ids = [doc_id for part in parts for doc_id in part.doc_ids]
    if len(moved) == 1:
        return Ranked(moved[0].of(slice(n_most)), tuple(doc_ids[:n_most]))
    rows = iter(range(len(doc_ids)))
    lists = [[*zip((-part.exact.scores).tolist(), part.doc_ids, rows, strict=False)] for part in parts]
    order = [row for _, _, row in islice(heapq.merge(*lists), n_most)]
    return Ranked(reduce(join_exact, moved).of(np.array(order, np.int64)), tuple(doc_ids[row] for row in order))


def merged_ranks(parts: Sequence[Ranks], bases: NDArray[np.int64], n_most: int) -> Ranks:
    """The rankings of all partitions as that of one partition; the arguments are those of `merged`."""
    return Ranks(
        merged([part.best for part in parts], bases, n_most),
        n_found=sum(one.n_found for one in parts),
        n_evident=sum(one.n_evident for one in parts),
        n_searched=sum(one.n_searched for one in parts),
        is_exact=all(one.is_exact for one in parts),
        is_complete=all(one.is_complete for one in parts),
    )
