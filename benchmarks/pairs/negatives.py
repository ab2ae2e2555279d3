"""The documents among which one is drawn that does not match: any, those that are linked, those that look alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence, Set
from enum import StrEnum
from typing import TypeAlias

from benchmarks.pairs.splitting import Edge, undirected
from engine.training.judgments import Judgments

# So many documents that look most like one, best first; fewer where there are no more.
Ranked: TypeAlias = Callable[[str, int], Sequence[str]]

LEXICAL_DEPTH = 50  # of the nearest that are free, among which a hard negative is drawn


class Negatives(StrEnum):
    """Where the document comes from that does not match."""

    RANDOM = "random"  # any document of the split's positives
    LINKED = "linked"  # out of those that the query links to
    LEXICAL = "lexical"  # out of those that share most words with the query


class Pool:
    """What can be drawn in one split."""

    def __init__(
        self,
        kind: Negatives,
        edges: Sequence[Edge],
        *,
        links: Judgments,
        at_home: Collection[str] | None,
        ranked: Ranked | None,
    ) -> None:
        """Take the matches of a split.

        Args:
            kind: where documents come from.
            edges: the matches; random and lexical negatives are among their documents.
            links: of the corpus.
            at_home: the documents of the split; None where splits share them.
            ranked: for `Negatives.LEXICAL`; the document itself may be among them.
        """
        self._kind = kind
        self._links = links
        self._at_home = at_home
        self._ranked = ranked
        self._members = list(dict.fromkeys(doc_id for edge in edges for doc_id in edge))
        self._is_member = frozenset(self._members)
        self._nearest: dict[str, tuple[float, list[str]]] = {}  # by query: how deep was looked, and members found

    def targets(self, query: str, taken: Set[Edge]) -> Sequence[str]:
        """Those that may be drawn; but for lexical ones some of them are `taken`, or the query itself."""
        match self._kind:
            case Negatives.RANDOM:
                return self._members
            case Negatives.LINKED:
                linked = self._links.get(query, ())
                return [doc_id for doc_id in linked if self._at_home is None or doc_id in self._at_home]
            case Negatives.LEXICAL:
                return self._free_and_near(query, taken)

    def _free_and_near(self, query: str, taken: Set[Edge]) -> list[str]:
        """The nearest members that are not taken, `LEXICAL_DEPTH` of them where the ranking holds so many."""
        assert self._ranked is not None
        depth, near = self._nearest.get(query, (0.0, []))
        while True:
            free = [doc_id for doc_id in near if doc_id != query and undirected(query, doc_id) not in taken]
            if len(free) >= LEXICAL_DEPTH or depth == math.inf:
                return free[:LEXICAL_DEPTH]
            asked = 4 * max(int(depth), LEXICAL_DEPTH)
            found = self._ranked(query, asked)
            depth = asked if len(found) == asked else math.inf
            near = [doc_id for doc_id in found if doc_id in self._is_member]
            self._nearest[query] = depth, near
