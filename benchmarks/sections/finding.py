"""Asks with the documents that planted passages are of: is the host found, and does the breakdown name the passage?"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.sections.hosts import Adoption
from benchmarks.sections.overlap import Overlap, overlap
from benchmarks.sections.planting import Planted
from benchmarks.systems import DocumentCosine
from engine.index import Index
from engine.scoring.breakdown import Breakdown

DEPTH = 100  # hits with a breakdown; a host further down counts as one whose passage was not named


@dataclass(frozen=True, slots=True)
class Ranks:
    """Places of one host among all other documents, from 1; the last place where it has no score."""

    evidence: int
    document: int  # by the cosine of document vectors


@dataclass(frozen=True, slots=True)
class Named:
    """What the breakdown says of a planted passage."""

    is_first: bool  # the first pair is the planted section and the one that it was taken from
    spans: Overlap  # of the passages of the target in the first pair, which words alone do not name, with the planted


NOT_NAMED = Named(False, Overlap(0.0, 0.0, 0.0))


class Asker:
    """Asks one index, whose lists must be exact; holds its names and document vectors."""

    def __init__(self, index: Index) -> None:
        """Read the document vectors."""
        self._index = index
        self._document = DocumentCosine(index, "")

    def ranks(self, adoption: Adoption) -> Ranks:
        """Where the query finds its host."""
        n = self._index.n_documents
        by_evidence = [name for name, _ in self._index.rank_id(adoption.query, k=n)]
        by_document = [name for name, _ in self._document.search(self._index.document(adoption.query), n)]
        return Ranks(_rank(by_evidence, adoption.host, n - 1), _rank(by_document, adoption.host, n - 1))

    def named(self, adoption: Adoption, planted: Planted) -> Named:
        """What the host's breakdown says, where it is among the `DEPTH` best."""
        result = self._index.search_id(adoption.query, k=DEPTH, exact=True)
        found = [hit.breakdown for hit in result.hits if hit.doc_id == adoption.host]
        return judge(found[0], adoption.section, planted) if found else NOT_NAMED


def judge(breakdown: Breakdown, query_section: int, planted: Planted) -> Named:
    """Hold the first pair against what was planted; a score without pairs names nothing."""
    if not breakdown.pairs:
        return NOT_NAMED
    first = breakdown.pairs[0]
    is_first = (first.query_section, first.target_section) == (query_section, planted.section)
    return Named(is_first, overlap((part.target for part in first.parts), planted.span))


def _rank(names: list[str], name: str, last: int) -> int:
    return names.index(name) + 1 if name in names else last
