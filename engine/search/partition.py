"""What search needs of a store: the documents of one partition, ranked and then shown. A protocol and its values.

A search takes two rounds. In the first each partition ranks its own documents by a query that was prepared once,
from the reference that all share; in the second the owners of the wanted hits show them. Searches with many queries
take other rounds: which documents there are, the best of them for several queries, and scores of given ones. An index
that is not partitioned is one partition.

Letters in shapes: R documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.document import Coverage, Document
from engine.search.query import Prepared
from engine.search.scorer import Exact
from engine.store.snapshot import Positions


@dataclass(frozen=True, slots=True)
class Selection:
    """Which documents a search may find, and how it looks for them."""

    where: str | None = None  # metadata filter, see `engine.store.where`
    without: tuple[str, ...] = ()  # doc_ids that are left out; one that is not there changes nothing
    exact: bool = False  # score every document, whatever index there is


@dataclass(frozen=True, slots=True)
class Ranked:
    """Documents in their order, with the names by which equal scores are ordered."""

    exact: Exact  # R documents by falling score, equal ones by doc_id; so within each tier of candidates
    doc_ids: tuple[str, ...]  # (R,)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The best documents of one partition, and how many it has."""

    best: Ranked
    n_found: int  # documents with a score above 0
    n_evident: int  # and those with a chunk above its threshold
    n_searched: int  # that pass the selection
    is_exact: bool  # every one of these was scored
    is_complete: bool  # and has vectors, where the index has any


@dataclass(frozen=True, slots=True)
class Survey:
    """The documents of one partition that a search may find."""

    positions: Positions  # (R,) rising
    is_exhaustive: bool  # a search scores every one of them
    is_complete: bool  # they have vectors, where the index has any


@dataclass(frozen=True, slots=True)
class Shown:
    """A document as a hit shows it."""

    document: Document
    coverage: Coverage
    spans: NDArray[np.int32]  # (C, 4) section, start, stop and tokens of its chunks
    has_vectors: bool


class Partition(Protocol):
    """Documents that are searched together with those of other partitions, by one scoring."""

    @property
    def n_documents(self) -> int:
        """Its documents; their positions are 0 to `n_documents` - 1."""

    def rank(self, prepared: Prepared, selection: Selection, n_most: int) -> Ranks:
        """Rank its documents.

        The first n documents are the same whatever `n_most` is.

        Args:
            prepared: the query, with thresholds and weights of terms from the shared reference.
            selection: which documents may be found.
            n_most: documents wanted.

        Raises:
            QueryError: the filter does not parse.
        """

    def survey(self, selection: Selection) -> Survey:
        """The documents that pass a selection; errors as of `rank`."""

    def tops(self, queries: Sequence[tuple[int, Prepared]], selection: Selection, n_most: int) -> list[Ranked]:
        """Rank all documents for each of several queries, by one pass over them; errors as of `rank`.

        Args:
            queries: the position that each leaves out, one that is not there for none, and the query.
            selection: which documents may be found.
            n_most: documents wanted of each.
        """

    def scores_of(self, prepared: Prepared, positions: Positions) -> NDArray[np.float64]:
        """The scores (R,) of documents at some positions, also of those with a score of 0."""

    def show(self, positions: Positions) -> Sequence[Shown]:
        """The documents at some positions (R,), in that order."""
