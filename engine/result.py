"""The results of a search: hits with their breakdown. Values that print themselves; no search here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, overload

from engine.encoders.encoder import Vectors
from engine.encoders.explanation import ModelExplanation
from engine.errors import QueryError
from engine.extras import check_extra
from engine.scoring.breakdown import Breakdown, SectionPair
from engine.text.document import Document, MetadataValue
from engine.text.spans import Coverage, Span

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from engine.plots.style import Plot
    from engine.provenance import Provenance
    from engine.report.snippets import Snippet

N_SNIPPETS = 3  # section pairs of a hit that are shown by default
N_MATCHES = 10  # section pairs of a hit that a report shows by default
_REPR_CHARACTERS = 50  # most characters of a title or a file name in a line


class Status(StrEnum):
    """How far a ranking can be trusted."""

    # Every document that could be found was scored completely: no other document belongs among the hits.
    CERTIFIED = "certified"
    # An approximate index, or words, chose the documents that were scored completely; every hit was.
    ESTIMATED = "estimated"
    # Evidence is missing: the query was not read to its end or its chunks were pooled, a hit or a wanted
    # candidate has no vectors yet, or a partition did not answer and was left out.
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True)
class PairSnippet:
    """A section pair for display: the sentence of each side that shows the match, and its place."""

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
    score: float  # in [0, 1]; hits are ranked by it; the sum of the breakdown up to rounding
    document: Document
    breakdown: Breakdown
    coverage: Coverage
    has_vectors: bool = True  # False: it was scored by words alone, and has no vectors yet
    model: ModelExplanation | None = None  # what the encoder computes by itself; None unless it was requested
    # The result that the hit belongs to, without its hits; snippets need the query.
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
            QueryError: the hit belongs to no `Result`, so there is no query.
        """
        # Loads the word segmenter, which a result that is only ranked does not need.
        from engine.report.snippets import pair_snippets, term_weights
        from engine.report.table import section_label

        answer = self.own_result()
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

    def plot(self) -> Plot:
        """A heat map of the contributions of the sections of the query and of the target to the score.

        Example:
            ```python
            index.search("draft.md")[0].plot().savefig("hit.svg")
            ```

        Raises:
            MissingExtra: matplotlib is not installed.
            QueryError: the hit belongs to no `Result`, so there is no query.
        """
        check_extra("matplotlib", "Hit.plot()", "matplotlib", "plot")
        from engine.plots.contributions import plot_hit

        return plot_hit(self.own_result(), self)

    def own_result(self) -> Result:
        """The result that the hit belongs to, without its hits.

        Raises:
            QueryError: the hit belongs to no result.
        """
        if self._answer is None:
            raise QueryError(f"the hit {self.doc_id!r} belongs to no result; take hits from the result of a search")
        return self._answer

    def _repr_html_(self) -> str | None:
        """The notebook view; None, which shows the `repr`, for a hit of no result."""
        if self._answer is None:
            return None
        from engine.report.html import result_html

        return result_html(replace(self._answer, hits=(self,)))


@dataclass(frozen=True, slots=True)
class Encoding:
    """How much of an index had vectors when a query was answered; None in a result where all documents have them."""

    n_missing: int  # documents that could have been found and have no vectors
    n_candidates: int  # best documents by words, which should have vectors
    n_encoded: int  # candidates that have vectors
    n_encoded_now: int  # candidates that were encoded for this query
    tokens_now: int  # tokens read to encode them
    seconds_now: float  # seconds to encode them; the encoding of the query is not included
    tokens_missing: int  # approximate tokens of the documents without vectors
    seconds_missing: float | None  # approximate seconds to encode those tokens; None where no speed is known


@dataclass(frozen=True, slots=True, repr=False)
class Result(Sequence[Hit]):
    """The answer to one query: a sequence of its hits, best first.

    Example:
        ```python
        for hit in index.search("carbon tax"):
            print(hit.rank, hit.title, hit.snippets(1))
        ```
    """

    query: Document
    query_coverage: Coverage
    hits: tuple[Hit, ...]
    status: Status
    n_found: int  # documents with a score above 0, on all pages; estimated where the status says so
    n_evident: int  # found documents with a passage above its threshold; words alone rank the others
    n_searched: int  # documents that could have been found: after filters, without the query itself
    seconds: float  # of the search, without encoding
    language: str | None  # language of the word segmentation; None for an index without words
    reference: int  # version of the reference that scores were computed with; 0 for one that is not pinned
    encoding: Encoding | None = None  # None where all documents that could have been found have vectors
    n_not_searched: int = 0  # documents of the partitions that did not answer and were left out
    missing_partitions: tuple[str, ...] = ()  # the partitions that were left out, by number and address
    provenance: Provenance | None = field(default=None, compare=False)  # None for a result that no search made

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
        """The result as plain values, ready for JSON, as in a line of `longmatch query --format jsonl`.

        `engine/report/result.schema.json` describes all fields (`longmatch.result_schema()`). The
        contributions of the parts of a hit sum to its score, to 1e-5.

        Args:
            n_pairs: section pairs listed for each hit, strongest first; all by default. A part `rest` sums the others.
        """
        # Loads the word segmenter, which a result that is only ranked does not need.
        from engine.report.contract import result_dict

        return result_dict(self, n_pairs=n_pairs)

    def to_html(self, *, n_pairs: int = N_MATCHES, command: str = "") -> str:
        """The evidence report: one offline file, as `longmatch query --format html` writes.

        It shows the ranking and, for each hit, contributions that sum to the score, a heat map of sections and
        the matches of both texts side by side. All numbers are those of `to_dict`.

        Example:
            Path("report.html").write_text(index.search("draft.pdf").to_html(), encoding="utf-8")

        Args:
            n_pairs: section pairs shown for each hit, strongest first.
            command: the command that made the report, shown at its end.
        """
        # Loads Jinja, which a result that is only ranked does without.
        from engine.report.page import result_page

        return result_page([self], n_pairs=n_pairs, command=command)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each hit, best first: query_id, rank, score, doc_id, title, status, then the metadata.

        Raises:
            MissingExtra: pandas is not installed.
        """
        from engine.report.frames import hit_frame

        return hit_frame(self)

    def parts_to_pandas(self, *, n_pairs: int | None = None) -> pandas.DataFrame:
        """A row for each part of each hit: the table that `longmatch query --format csv` prints.

        Args:
            n_pairs: section pairs listed for each hit, strongest first; all by default. A part `rest` sums the others.

        Raises:
            MissingExtra: pandas is not installed.
        """
        from engine.report.frames import part_frame

        return part_frame(self, n_pairs=n_pairs)

    def parts_to_arrow(self, *, n_pairs: int | None = None) -> pyarrow.Table:
        """The table of `parts_to_pandas` as an Arrow table.

        Args:
            n_pairs: section pairs listed for each hit, strongest first; all by default. A part `rest` sums the others.

        Raises:
            MissingExtra: pyarrow is not installed.
        """
        check_extra("pyarrow", "Result.parts_to_arrow()", "pyarrow", "arrow")
        from engine.report.arrow import part_export

        return part_export([self], n_pairs=n_pairs).table()

    def plot(self) -> Plot:
        """A heat map of the contribution of each section of the query to each hit; a column sums to the score of a hit.

        Raises:
            MissingExtra: matplotlib is not installed.
            QueryError: there are no hits.
        """
        check_extra("matplotlib", "Result.plot()", "matplotlib", "plot")
        from engine.plots.contributions import plot_result

        return plot_result(self)

    def __repr__(self) -> str:
        source = f" from {_short(self.query.source)!r}" if self.query.source else ""
        counts = f"{len(self.hits)} of {self.n_found:,} hits"
        return f"Result({_short(self.query.title)!r}{source}, {counts}, {self.status.value})"

    def __str__(self) -> str:
        from engine.report.table import result_table

        return result_table(self)

    def _repr_html_(self) -> str:
        from engine.report.html import result_html

        return result_html(self)


@dataclass(frozen=True, slots=True, repr=False)
class SectionMatrix:
    """Plain cosines of all sections of two documents."""

    query: Document
    target: Document
    cosines: Vectors  # (sections of the query, sections of the target)

    def __repr__(self) -> str:
        n_rows, n_columns = self.cosines.shape
        sides = f"{_short(self.query.title)!r}, {_short(self.target.title)!r}"
        extent = f", cosines {self.cosines.min():.2f} to {self.cosines.max():.2f}" if self.cosines.size else ""
        return f"SectionMatrix({sides}, {n_rows} x {n_columns} sections{extent})"

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each section of the query, a column for each section of the target, by index and heading.

        Raises:
            MissingExtra: pandas is not installed.
        """
        from engine.report.frames import matrix_frame

        return matrix_frame(self)

    def _repr_html_(self) -> str:
        from engine.report.matrix_html import matrix_html

        return matrix_html(self)


def shown_spans(pair: SectionPair, query: Document, target: Document) -> tuple[Span, Span]:
    """The spans that show a match: the strongest passage, or the whole sections where words contribute more.

    Args:
        pair: a section pair of the two documents.
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


def _short(text: str) -> str:
    return text if len(text) <= _REPR_CHARACTERS else text[: _REPR_CHARACTERS - 1].rstrip() + "…"
