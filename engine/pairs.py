"""Pairs of documents of one index that overlap, and the clusters that they form. Values; nothing is searched here.

A pair is found if one of the two documents is among the best targets of the other. It is listed once, and its score
is the larger of the two directions, so that it does not depend on which document was the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from engine.errors import QueryError

PAIR_COLUMNS = ("first", "second", "score", "forward", "backward", "first_title", "second_title")
CLUSTER_COLUMNS = ("cluster", "size", "doc_id", "title")


@dataclass(frozen=True, slots=True)
class DocumentPair:
    """Two documents that overlap."""

    first: str  # doc_id, before `second` in the order of names
    second: str
    forward: float  # score of `second` for the query `first`, in [0, 1]
    backward: float  # score of `first` for the query `second`
    first_title: str = ""
    second_title: str = ""

    @property
    def score(self) -> float:
        """The larger of the two directions."""
        return max(self.forward, self.backward)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Documents that pairs connect, directly or through others."""

    number: int  # from 1, the largest first
    members: tuple[tuple[str, str], ...]  # doc_id and title, by doc_id


@dataclass(frozen=True, slots=True, repr=False)
class Pairs(Sequence[DocumentPair]):
    """The pairs of an index, best first; pairs with equal scores in order of doc_ids."""

    pairs: tuple[DocumentPair, ...]
    n_documents: int  # documents that were compared
    least: float  # lowest score of a pair
    top: int  # targets of each document that can make a pair
    mode: str  # meaning of the scores, see `engine.search.request.Mode`
    is_certified: bool  # every document was scored for every document, with all evidence
    by_words: bool  # scored by words alone
    seconds: float

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, at: int) -> DocumentPair: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[DocumentPair, ...]: ...

    def __getitem__(self, at: int | slice) -> DocumentPair | tuple[DocumentPair, ...]:
        return self.pairs[at]

    def __repr__(self) -> str:
        return f"Pairs({len(self.pairs):,} pairs of {self.n_documents:,} documents, score at least {self.least:g})"

    def rows(self) -> list[tuple[str | float, ...]]:
        """A row for each pair, with `PAIR_COLUMNS`."""
        return [tuple(getattr(pair, name) for name in PAIR_COLUMNS) for pair in self.pairs]

    def clusters(self, least: float | None = None) -> tuple[Cluster, ...]:
        """The connected components over pairs of at least a given score; a document without such a pair is in none.

        Raises:
            QueryError: the score is below that of the pairs, so that some would be missing.
        """
        least = self.least if least is None else least
        if least < self.least:
            raise QueryError(f"clusters from a score of {least:g} need pairs from there; they begin at {self.least:g}")
        titles: dict[str, str] = {}
        parents: dict[str, str] = {}
        for pair in self.pairs:
            if pair.score < least:
                continue
            titles |= {pair.first: pair.first_title, pair.second: pair.second_title}
            one, other = sorted((_root(parents, pair.first), _root(parents, pair.second)))
            parents[other] = one
        members: dict[str, list[str]] = {}
        for name in sorted(titles):
            members.setdefault(_root(parents, name), []).append(name)
        ordered = sorted(members.values(), key=lambda names: (-len(names), names[0]))
        return tuple(
            Cluster(number, tuple((name, titles[name]) for name in names))
            for number, names in enumerate(ordered, start=1)
        )


def cluster_rows(clusters: Sequence[Cluster]) -> list[tuple[int | str, ...]]:
    """A row for each document, with `CLUSTER_COLUMNS`."""
    return [
        (cluster.number, len(cluster.members), name, title) for cluster in clusters for name, title in cluster.members
    ]


def _root(parents: dict[str, str], name: str) -> str:
    """The name that represents a component in the union-find forest; compresses the path to it."""
    root = name
    while parents.get(root, root) != root:
        root = parents[root]
    while name != root:
        parents[name], name = root, parents[name]
    return root
