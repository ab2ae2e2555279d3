"""Shared code of the retrievers: one opened index for all threads, and hits as texts with plain metadata.

Imports no framework.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from engine.errors import QueryError
from engine.result import shown_spans
from engine.scoring.parts import SectionPair
from engine.search.request import Request
from engine.text.document import Document, section_label
from engine.text.segmentation import Span
from engine.views import Hit, Result
from engine.words.places import TermPlaces
from longmatch.index import Index
from longmatch.sources import Where

Content: TypeAlias = Literal["passages", "document"]
Source: TypeAlias = Index | str | os.PathLike[str]
MOST_CHARACTERS = 2_000  # of one passage; a section whose words match can be far longer
BULKY = ("pairs",)  # metadata that are for programs, not for a prompt


_SETTINGS = ("index", "k", "where", "n_pairs", "content")
_USUAL_NAMES = {"top_k": "k", "similarity_top_k": "k", "search_kwargs": "k", "filter": "where", "filters": "where"}


def refuse_unknown(retriever: str, unknown: Iterable[str]) -> None:
    """Refuse arguments that a retriever does not have.

    Raises:
        TypeError: there is one; the message has the name that was probably meant.
    """
    for name in unknown:
        near = [_USUAL_NAMES[name]] if name in _USUAL_NAMES else get_close_matches(name, _SETTINGS, 1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(_SETTINGS)}"
        raise TypeError(f"{retriever} has no argument {name!r}; {hint}")


@dataclass(frozen=True, slots=True)
class Found:
    """A hit in the form that frameworks need."""

    doc_id: str
    score: float
    text: str
    metadata: dict[str, Any]  # plain values


class Retrieval:
    """An opened index and the settings of a retriever; several threads may search with it."""

    def __init__(
        self, index: Source, *, k: int = 10, where: Where | None = None, n_pairs: int = 3, content: Content = "passages"
    ) -> None:
        """Open the index, if it is a folder.

        Args:
            index: a folder, or an opened `longmatch.Index`.
            k: number of hits per query.
            where: metadata filter, as in `longmatch.Index.search`.
            n_pairs: section pairs of each hit, strongest first, in text and metadata.
            content: the text of a hit: its passages in these section pairs, or the whole document.

        Raises:
            IndexMismatch: there is no index in the folder.
            QueryError: a setting cannot be used.
        """
        Request.of(k=k, where=where)
        if not isinstance(n_pairs, int):
            raise QueryError(f"n_pairs is {n_pairs!r:.40}; it must be a whole number")
        if content not in get_args(Content):
            raise QueryError(f"content is {content!r}; use one of {', '.join(map(repr, get_args(Content)))}")
        self.index = index if isinstance(index, Index) else Index.open(index, progress=False)
        self.k, self.where, self.n_pairs, self.content = k, where, n_pairs, content

    def find(self, query: str, *, k: int | None = None, where: Where | None = None) -> list[Found]:
        """Search with a text of any length, which is never taken as the name of a file.

        `k` and `where` are those of the settings by default.

        Raises:
            DocumentError: the query is empty.
            QueryError: k or the filter cannot be used.
        """
        document = Document.from_text(query)
        result = self.index.search(document, k=self.k if k is None else k, where=self.where if where is None else where)
        return [self._found(result, hit) for hit in result]

    def _found(self, result: Result, hit: Hit) -> Found:
        _, theirs = hit.places
        pairs = [(pair, passage(pair, result.query, theirs)) for pair in hit.pairs[: self.n_pairs]]
        text = hit.document.text
        if self.content == "passages":
            spans = list(dict.fromkeys(span for _, span in pairs)) or [Span(0, min(len(text), MOST_CHARACTERS))]
            text = "\n\n".join(text[span.start : span.stop].strip() for span in spans)
        return Found(hit.doc_id, hit.score, text, hit_metadata(result, hit, pairs))


def passage(pair: SectionPair, query: Document, places: TermPlaces) -> Span:
    """The span of the target that `Hit.snippets` uses, at most `MOST_CHARACTERS` where matched words contribute most.

    `theirs` has the places of terms in the target.
    """
    span = shown_spans(pair, query, places.document)[1]
    if span.stop - span.start <= MOST_CHARACTERS:
        return span
    terms, spans = places.in_order(np.array([term.key for term in pair.terms], np.int64))
    starts = spans[:, 0]
    is_inside = (span.start <= starts) & (starts < span.stop)
    if not is_inside.any():
        return Span(span.start, span.start + MOST_CHARACTERS)
    starts = starts[is_inside]
    weights = np.array([term.contribution for term in pair.terms])[terms[is_inside]]
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    within = sums[np.searchsorted(starts, starts + MOST_CHARACTERS)] - sums[:-1]
    first = int(starts[np.argmax(within)])
    line = max(span.start, places.document.text.rfind("\n", span.start, first) + 1)
    start = line if first - line < MOST_CHARACTERS // 4 else first
    return Span(start, min(span.stop, start + MOST_CHARACTERS))


def hit_metadata(result: Result, hit: Hit, pairs: Sequence[tuple[SectionPair, Span]]) -> dict[str, Any]:
    """Fields of a hit, and metadata of its document; metadata with the name of a field become `document_NAME`.

    `pairs` are the section pairs to list, each with the span of the target that is shown.
    """
    document = hit.document
    values = {
        "doc_id": hit.doc_id,
        "title": hit.title,
        "source": document.source,
        "rank": hit.rank,
        "score": hit.score,
        "status": result.status.value,
        "pages": sorted({page for _, span in pairs for page in document.page_numbers(span)}),
        "pairs": [_pair(result.query, document, pair, span) for pair, span in pairs],
    }
    return values | {f"document_{name}" if name in values else name: value for name, value in document.metadata.items()}


def _pair(query: Document, target: Document, pair: SectionPair, span: Span) -> dict[str, Any]:
    mine = shown_spans(pair, query, target)[0]
    return {
        "contribution": pair.contribution,
        "query_section": section_label(query, pair.query_section),
        "target_section": section_label(target, pair.target_section),
        "query_span": [mine.start, mine.stop],
        "target_span": [span.start, span.stop],
        "query_pages": list(query.page_numbers(mine)),
        "target_pages": list(target.page_numbers(span)),
        "words": [term.term for term in pair.terms],
    }
