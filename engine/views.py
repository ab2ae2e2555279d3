"""The views of results: as plain values, tables, data frames and HTML. Nothing is searched here.

`engine.search` returns the bare values of `engine.result`; an index returns their views, which are the same values and
can be printed and drawn. Reports know the bare values alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar, overload

from engine import result as results
from engine.result import N_SNIPPETS
from engine.text.document import section_label

if TYPE_CHECKING:
    import pandas

    from engine.report.quotes import Quote

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PairSnippet:
    """A section pair for display: the sentence of each side that shows the match, and its place."""

    contribution: float  # of the pair to the score
    query_section: str  # its heading, or its first words where it has none
    target_section: str
    query: Quote
    target: Quote
    query_pages: tuple[int, ...]  # of the sentence, from 1; empty for a format without pages
    target_pages: tuple[int, ...]

    def __str__(self) -> str:
        query, target = _place(self.query_section, self.query_pages), _place(self.target_section, self.target_pages)
        return f"{self.contribution:.4f}  {query} -> {target}\n  < {self.query.text}\n  > {self.target.text}"


class Hit(results.Hit):
    """One target, its score, and the parts that sum to it, with snippets."""

    __slots__ = ()

    def snippets(self, n_pairs: int = N_SNIPPETS) -> list[PairSnippet]:
        """The sentences behind the strongest section pairs, with the words that both sides share.

        Raises:
            QueryError: the hit belongs to no `Result`, so there is no query.
        """
        # Loads the word segmenter, which a result that is only ranked does not need.
        from engine.report.quotes import Quotes

        answer = self.own_result()
        quotes = Quotes(answer.query, self, answer.language, answer.stock)
        snippets = []
        for pair in self.pairs[: max(0, n_pairs)]:
            query, target = quotes.of(pair)
            snippets.append(
                PairSnippet(
                    pair.contribution,
                    section_label(answer.query, pair.query_section),
                    section_label(self.document, pair.target_section),
                    query,
                    target,
                    answer.query.page_numbers(query.span),
                    self.document.page_numbers(target.span),
                )
            )
        return snippets

    def _repr_html_(self) -> str | None:
        """The notebook view; None, which shows the `repr`, for a hit of no result."""
        from engine.report.page import result_html

        return None if self._answer is None else result_html(replace(self._answer, hits=(self,), sections=None))


class Result(results.Result):
    """The answer to one query: a sequence of its hits, best first.

    A search for novelty also has `sections`, most novel first, each with its best hit. A comparison has one hit.

    Example:
        ```python
        for hit in index.search("carbon tax"):
            print(hit.rank, hit.title, hit.snippets(1))
        for section in index.search("draft.pdf", mode="novelty").sections:
            print(section.novelty, section.heading, section.hit)
        ```
    """

    __slots__ = ()
    hits: tuple[Hit, ...]

    @overload
    def __getitem__(self, at: int) -> Hit: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, at: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[at]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def to_dict(self, *, n_pairs: int | None = N_SNIPPETS) -> dict[str, Any]:
        """The result as plain values, ready for JSON, as in a line of `longmatch query --format jsonl`.

        `engine/report/result.schema.json` describes all fields (`longmatch.result_schema()`). The
        contributions of the parts of a hit sum to its score, to 1e-5.

        Args:
            n_pairs: section pairs listed for each hit, strongest first; None for all. A part `rest` sums the others.
        """
        # Loads the word segmenter, which a result that is only ranked does not need.
        from engine.report.contract import result_dict

        return result_dict(self, n_pairs=n_pairs)

    def to_html(self, *, n_pairs: int | None = None, command: str = "") -> str:
        """The evidence report: one offline file, as `longmatch query --format html` writes.

        It shows the ranking and, for each hit, contributions that sum to the score, a heat map of sections and
        the matches of both texts side by side. All numbers are those of `to_dict`.

        Example:
            Path("report.html").write_text(index.search("draft.pdf").to_html(), encoding="utf-8")

        Args:
            n_pairs: section pairs shown for each hit, strongest first; by default 10, for novelty 3.
        """
        # Loads Jinja, which a result that is only ranked does without.
        from engine.report.page import result_page

        return result_page([self], n_pairs=n_pairs, command=command)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each hit, best first: query_id, rank, score, doc_id, title, status, then the metadata.

        Raises:
            MissingExtra: pandas is not installed.
        """
        from engine.report.exports import hit_frame

        return hit_frame(self)

    def parts_to_pandas(self, *, n_pairs: int | None = N_SNIPPETS) -> pandas.DataFrame:
        """A row for each part of each hit: the table that `longmatch query --format csv` prints.

        Args:
            n_pairs: section pairs listed for each hit, strongest first; None for all. A part `rest` sums the others.

        Raises:
            MissingExtra: pandas is not installed.
        """
        from engine.report.exports import part_frame

        return part_frame(self, n_pairs=n_pairs)

    def __str__(self) -> str:
        from engine.report.lines import plain
        from engine.report.table import result_lines

        return plain(result_lines(self))

    def _repr_html_(self) -> str:
        from engine.report.page import result_html

        return result_html(self) if self.sections is None else f"<pre>{escape(str(self))}</pre>"


class JointResult(results.JointResult):
    """The answer to several documents as one query: a sequence of its hits, best first.

    Example:
        ```python
        for hit in index.search_together(["draft.pdf", "notes.md"], unlike_ids=["old"]):
            print(hit.score, hit.contributions, hit.title, hit.hits[0].snippets(1))
        ```
    """

    __slots__ = ()
    results: tuple[Result, ...]

    def to_dict(self, *, n_pairs: int | None = N_SNIPPETS) -> dict[str, Any]:
        """The result as plain values, as in a line of `longmatch query --together --format jsonl`.

        Args:
            n_pairs: section pairs listed for each hit and query document, strongest first; None for all.
        """
        from engine.report.table import joint_dict

        return joint_dict(self, n_pairs=n_pairs)

    def __str__(self) -> str:
        from engine.report.lines import plain
        from engine.report.table import joint_lines

        return plain(joint_lines(self))


def result_view(result: results.Result) -> Result:
    """The view of a result, and of its hits."""
    return _view(Result, result, hits=tuple(_view(Hit, hit) for hit in result.hits))


def joint_view(result: results.JointResult) -> JointResult:
    """The view of a joint result, and of its results."""
    return _view(JointResult, result, results=tuple(map(result_view, result.results)))


def _view(view: type[T], value: object, **changed: object) -> T:
    """The same value as an instance of a subclass of its class."""
    values = {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]
    return view(**(values | changed))


def _place(section: str, pages: tuple[int, ...]) -> str:
    if not pages:
        return section
    return f"{section} (p. {pages[0]})" if len(pages) == 1 else f"{section} (pp. {pages[0]}-{pages[-1]})"
