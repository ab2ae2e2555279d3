"""What a search returns: hits with their breakdown. Values that print themselves; no search here."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, overload

from engine.document import Coverage, Document, MetadataValue, Span
from engine.encoders.encoder import Vectors
from engine.errors import MissingExtra, QueryError
from engine.scoring.breakdown import N_TERMS, Breakdown, ChunkPart, SectionPair

if TYPE_CHECKING:
    import pandas

    from engine.report.snippets import Snippet

N_SNIPPETS = 3  # section pairs of a hit that are shown by default


class Status(StrEnum):
    """How far a ranking can be trusted."""

    CERTIFIED = "certified"  # every document was scored: no document of the corpus can rank otherwise
    # An approximate index chose the candidates, or the query was pooled, or documents have no vectors yet.
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True)
class PairSnippet:
    """A section pair for people: the sentence of each side that says what matches, and where it stands."""

    contribution: float  # of the pair to the score
    query_section: str  # its heading, or its first words where it has none
    target_section: str
    query: Snippet
    target: Snippet
    query_pages: tuple[int, ...]  # of the passage, from 1; empty for a format without pages
    target_pages: tuple[int, ...]

    def __str__(self) -> str:
        query, target = _place(self.query_section, self.query_pages), _place(self.target_section, self.target_pages)
        return f"{self.contribution:.4f}  {query} -> {target}\n  < {self.query.marked()}\n  > {self.target.marked()}"


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """One target, its score, and the parts that sum to it."""

    rank: int  # from 1
    score: float  # in [0, 1]; what was ranked by, and the sum of the breakdown up to rounding
    document: Document
    breakdown: Breakdown
    coverage: Coverage
    has_vectors: bool = True  # False: it was scored by words alone, and has no vectors yet
    # The result that it belongs to, without the hits of that; snippets need the query.
    _answer: Result | None = field(default=None, repr=False, compare=False)

    @property
    def doc_id(self) -> str:
        """Name of the target."""
        return self.document.doc_id

    @property
    def title(self) -> str:
        """Title of the target."""
        return self.document.title

    def __repr__(self) -> str:
        n_pairs = len(self.breakdown.pairs)
        return f"Hit({self.rank}, {self.score:.4f}, {self.doc_id!r}, {self.title!r}, {n_pairs} section pairs)"

    @property
    def metadata(self) -> Mapping[str, MetadataValue]:
        """Metadata of the target."""
        return self.document.metadata

    @property
    def pairs(self) -> tuple[SectionPair, ...]:
        """The section pairs of the breakdown, strongest first."""
        return self.breakdown.pairs

    def snippets(self, n_pairs: int = N_SNIPPETS) -> list[PairSnippet]:
        """The sentences behind the strongest section pairs, with the words that both sides share.

        Args:
            n_pairs: section pairs, strongest first.

        Raises:
            QueryError: the hit is not one of a `Result`, so that there is no query.
        """
        # Loads the segmenter of words, which a result that is only ranked does without.
        from engine.report.snippets import pair_snippets, term_weights
        from engine.report.table import section_label

        answer = self._asked()
        weights = term_weights(self, answer.language)
        found = []
        for pair in self.pairs[: max(0, n_pairs)]:
            both = pair_snippets(answer, self, pair, weights)
            mine, theirs = shown_spans(pair, answer.query, self.document)
            found.append(
                PairSnippet(
                    pair.contribution,
                    section_label(answer.query, pair.query_section),
                    section_label(self.document, pair.target_section),
                    both.query,
                    both.target,
                    answer.query.page_numbers(mine),
                    self.document.page_numbers(theirs),
                )
            )
        return found

    def _asked(self) -> Result:
        if self._answer is None:
            raise QueryError(f"the hit {self.doc_id!r} belongs to no result; take hits from the result of a search")
        return self._answer

    def _repr_html_(self) -> str:
        from engine.report.html import result_html

        return result_html(replace(self._asked(), hits=(self,)))


@dataclass(frozen=True, slots=True)
class Encoding:
    """How much of an index had vectors when a query was answered; where all of it has, a result holds none."""

    n_missing: int  # documents that could have been found and have no vectors
    n_candidates: int  # best documents by words, which were to have vectors
    n_encoded: int  # of these, those that have
    n_encoded_now: int  # of these, those that were encoded for this query
    tokens_now: int  # read for it
    seconds_now: float  # taken by it, the query's own encoding aside
    tokens_missing: int  # of the documents without vectors, about
    seconds_missing: float | None  # that encoding those would take, about; None where no speed is known


@dataclass(frozen=True, slots=True, repr=False)
class Result(Sequence[Hit]):
    """The answer to one query: a sequence of its hits, best first.

    Example:
        for hit in index.search("carbon tax"):
            print(hit.rank, hit.title, hit.snippets(1))
    """

    query: Document
    query_coverage: Coverage
    hits: tuple[Hit, ...]
    status: Status
    n_found: int  # documents with a score above 0, on all pages; estimated where the status says so
    n_evident: int  # of these, documents with a passage above its threshold; words alone rank the others
    n_searched: int  # documents that could have been found: after filters, without the query itself
    seconds: float  # of the search, encoding aside
    language: str | None  # by which words were segmented; None for an index without words
    reference: int  # version of the reference that scores were computed with; 0 for one that is not pinned
    encoding: Encoding | None = None  # None where all documents that could have been found have vectors

    def __post_init__(self) -> None:
        if self.hits:
            answer = replace(self, hits=())  # without hits, so that no hit refers to itself
            object.__setattr__(self, "hits", tuple(replace(hit, _answer=answer) for hit in self.hits))

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, at: int) -> Hit: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, at: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[at]

    def to_dict(self, *, n_pairs: int | None = None) -> dict[str, Any]:
        """Everything as plain values, text spans included; ready for JSON.

        Args:
            n_pairs: section pairs of each hit, strongest first; all by default.
        """
        return {
            "query": {
                "doc_id": self.query.doc_id,
                "title": self.query.title,
                "coverage": _coverage(self.query_coverage) | {"chunks_pooled": self.query_coverage.chunks_pooled},
            },
            "status": self.status.value,
            "n_found": self.n_found,
            "n_evident": self.n_evident,
            "reference": self.reference,
            "n_searched": self.n_searched,
            "seconds": round(self.seconds, 6),
            "encoding": None if self.encoding is None else asdict(self.encoding),
            "hits": [hit_to_dict(hit, self.query, n_pairs=n_pairs) for hit in self.hits],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """One row a hit, best first.

        Raises:
            MissingExtra: pandas is not installed.
        """
        if importlib.util.find_spec("pandas") is None:
            raise MissingExtra("Result.to_pandas()", "pandas", "pandas")
        import pandas

        return pandas.DataFrame(
            [
                # First of all columns, and not replaced by metadata of the same names.
                _own(hit) | dict(hit.metadata) | _own(hit)
                for hit in self.hits
            ],
            columns=None if self.hits else ["rank", "score", "doc_id", "title"],
        )

    def __repr__(self) -> str:
        source = f" from {self.query.source!r}" if self.query.source else ""
        return f"Result({self.query.title!r}{source}, {len(self.hits)} hits of {self.n_found}, {self.status.value})"

    def __str__(self) -> str:
        from engine.report.table import result_table

        return result_table(self)

    def _repr_html_(self) -> str:
        from engine.report.html import result_html

        return result_html(self)


def _own(hit: Hit) -> dict[str, Any]:
    return {"rank": hit.rank, "score": hit.score, "doc_id": hit.doc_id, "title": hit.title}


@dataclass(frozen=True, slots=True)
class SectionMatrix:
    """Plain cosines of all sections of two documents."""

    query: Document
    target: Document
    cosines: Vectors  # (sections of the query, sections of the target)


def hit_to_dict(hit: Hit, query: Document, *, n_pairs: int | None = None) -> dict[str, Any]:
    """One hit as plain values."""
    whole = hit.breakdown.document
    return {
        "rank": hit.rank,
        "score": hit.score,
        "doc_id": hit.doc_id,
        "title": hit.title,
        "source": hit.document.source,
        "metadata": dict(hit.metadata),
        "coverage": _coverage(hit.coverage),
        "has_vectors": hit.has_vectors,
        "components": dict(hit.breakdown.components),
        "document_part": None if whole is None else asdict(whole),
        "n_pairs": len(hit.breakdown.pairs),
        "pairs": [_pair(pair, query, hit.document) for pair in hit.breakdown.pairs[:n_pairs]],
        "rest": sum(pair.contribution for pair in hit.breakdown.pairs[n_pairs:]) if n_pairs is not None else 0.0,
        "terms": [asdict(term) for term in hit.breakdown.terms[:N_TERMS]],
    }


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {
        "tokens_read": coverage.tokens_read,
        "tokens_total": coverage.tokens_total,
        "share": coverage.share,
    }


def _pair(pair: SectionPair, query: Document, target: Document) -> dict[str, Any]:
    return {
        "query_section": pair.query_section,
        "query_heading": query.sections[pair.query_section].heading,
        "target_section": pair.target_section,
        "target_heading": target.sections[pair.target_section].heading,
        "contribution": pair.contribution,
        "parts": [_part(part, query, target) for part in pair.parts],
        "words": pair.words,
        "terms": [asdict(term) for term in pair.terms],
    }


def _part(part: ChunkPart, query: Document, target: Document) -> dict[str, Any]:
    return {
        "similarity": part.similarity,
        "threshold": part.threshold,
        "weight": part.weight,
        "contribution": part.contribution,
        "query": _span(part.query, query),
        "target": _span(part.target, target),
    }


def _span(span: Span, document: Document) -> dict[str, Any]:
    return {
        "start": span.start,
        "stop": span.stop,
        "text": document.text[span.start : span.stop],
        "pages": list(document.page_numbers(span)),
    }


def shown_spans(pair: SectionPair, query: Document, target: Document) -> tuple[Span, Span]:
    """Where to look for what matches: the strongest passage, or the sections where words add more.

    Args:
        pair: of the two documents.
        query: the document that was searched with.
        target: the document that was found.

    Returns:
        A span of the query and a span of the target.
    """
    if pair.parts and pair.parts[0].contribution >= pair.words:
        return pair.parts[0].query, pair.parts[0].target
    mine, theirs = query.sections[pair.query_section], target.sections[pair.target_section]
    return Span(mine.start, mine.stop), Span(theirs.start, theirs.stop)


def _place(section: str, pages: tuple[int, ...]) -> str:
    if not pages:
        return section
    return f"{section} (p. {pages[0]})" if len(pages) == 1 else f"{section} (pp. {pages[0]}-{pages[-1]})"
