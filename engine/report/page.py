"""Reports as one offline file, and fragments for notebooks: their contents as plain values, and pages from templates.

The heat map of a hit has a path for each shade and no element for each cell, so that a map of 300 x 300 sections has as
few elements as one of 3 x 3. Coordinates are computed here; the template draws.

All numbers are those of `Result.to_dict`; documents add their text. A match is a section pair that is shown:
it has a number, a colour, and a place in both texts. There is one for each section of the query that is shown.

Jinja2 escapes every value; values inside of scripts are JSON without markup characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from engine.report import contract, table
from engine.report.lines import counted, pages_label
from engine.report.quotes import marked_runs as quote_runs
from engine.report.quotes import window
from engine.result import N_MATCHES, Hit, Result, SectionNovelty, Status, cut_short
from engine.scoring.parts import PairColumns, pair_columns
from engine.text.cleaning import printable
from engine.text.document import KIND, LEFT_OUT, Document, MetadataValue, Scalar, section_label, section_labels
from engine.text.segmentation import Span
from engine.words.places import after_heading

SHADES = 8
MOST_CELLS = 4_000  # cells whose contribution is shown under the pointer; the strongest
MOST_DRAWN = 20_000  # cells that are drawn; the strongest
_SIDE = 620  # pixels of the longer side, about
_SMALLEST, _LARGEST = 3, 24  # pixels of a cell
_LINE = 13  # pixels that a label needs
_LABEL_CHARACTERS = 34
_NUMBERED = 12  # pixels of a cell that has room for the number of its match
_PER_CHARACTER = 6.2  # pixels, about


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a row or column."""

    at: float  # pixels from the beginning of the axis to the middle of the cell
    text: str
    full: str


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell whose match is shown in the report."""

    x: int
    y: int
    match: int
    title: str


@dataclass(frozen=True, slots=True)
class SectionMap:
    """All values that the picture needs; lengths in pixels."""

    cell: int
    left: int  # room for the names of rows
    top: int  # room for the names of columns, which lean to the right
    lean: int  # how far the name of the last column extends beyond the column
    n_rows: int
    n_columns: int
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    shades: tuple[tuple[int, str], ...]  # shade from 1, and the path of all its cells
    shown: tuple[ShownCell, ...]
    is_numbered: bool
    names: tuple[tuple[str, ...], tuple[str, ...]]  # of all sections of query and target
    cells: tuple[tuple[int, int, float], ...]  # row, column and contribution, strongest first
    n_cells: int  # cells that contribute, listed in `cells` or not
    most: float  # the highest contribution

    @property
    def width(self) -> int:
        """Width of the picture, with the part of the last column's name that extends beyond the column."""
        return self.left + self.n_columns * self.cell + self.lean

    @property
    def height(self) -> int:
        """Height of the picture."""
        return self.top + self.n_rows * self.cell + 4


def section_map(query: Document, target: Document, pairs: PairColumns, shown: Sequence[tuple[int, int]]) -> SectionMap:
    """Lay out the heat map of a hit."""
    names = tuple(section_labels(query)), tuple(section_labels(target))
    n_rows, n_columns = max(1, len(names[0])), max(1, len(names[1]))
    cell = max(_SMALLEST, min(_LARGEST, _SIDE // max(n_rows, n_columns)))
    rows, columns = _labels(names[0], cell), _labels(names[1], cell)
    drawn = pairs.of(np.argsort(-pairs.contributions, kind="stable")[:MOST_DRAWN])
    strongest = drawn.of(slice(MOST_CELLS))
    cells = tuple(
        zip(
            *(axis.tolist() for axis in (strongest.query_sections, strongest.target_sections, strongest.contributions)),
            strict=True,
        )
    )
    return SectionMap(
        cell=cell,
        left=_room(rows),
        top=int(0.75 * _room(columns)) + 10,
        lean=int(0.67 * _room(columns)),
        n_rows=n_rows,
        n_columns=n_columns,
        rows=rows,
        columns=columns,
        shades=_shades(drawn, cell),
        shown=tuple(
            ShownCell(column * cell, row * cell, number, f"match {number}: {names[0][row]} → {names[1][column]}")
            for number, (row, column) in enumerate(shown, start=1)
        ),
        is_numbered=cell >= _NUMBERED,
        names=names,
        cells=cells,
        n_cells=len(pairs.contributions),
        most=cells[0][2] if cells else 0.0,
    )


def _labels(names: Sequence[str], cell: int) -> tuple[Label, ...]:
    """The names of the rows or columns, as far as there is room for labels."""
    step = -(-_LINE // cell)
    return tuple(
        Label((place + 0.5) * cell, cut_short(f"{place + 1} {name}", _LABEL_CHARACTERS), f"{place + 1} {name}")
        for place, name in enumerate(names)
        if place % step == 0
    )


def _room(labels: Sequence[Label]) -> int:
    return int(_PER_CHARACTER * max((len(label.text) for label in labels), default=0)) + 12


def _shades(pairs: PairColumns, cell: int) -> tuple[tuple[int, str], ...]:
    """Paths by shade; neighbouring cells of a row with the same shade are one rectangle."""
    # Square roots, since one strong pair would otherwise leave all others white.
    most = max(float(pairs.contributions.max(initial=0.0)), 1e-12)
    levels = np.ceil(SHADES * np.sqrt(pairs.contributions / most)).astype(np.int64)
    order = np.lexsort((pairs.target_sections, pairs.query_sections, levels))
    levels, rows, columns = levels[order], pairs.query_sections[order], pairs.target_sections[order]
    is_new_row = (np.diff(levels, prepend=-1) != 0) | (np.diff(rows, prepend=-1) != 0)
    firsts = np.flatnonzero(is_new_row | (np.diff(columns, prepend=-2) != 1))
    sizes = np.diff(np.append(firsts, len(levels)))
    paths: dict[int, list[str]] = {}
    runs = np.stack([levels[firsts], rows[firsts], columns[firsts], sizes], axis=1)
    for level, row, start, n_cells in runs.tolist():
        path = f"M{start * cell} {row * cell}h{n_cells * cell}v{cell}h{-n_cells * cell}z"
        paths.setdefault(level, []).append(path)
    return tuple((level, "".join(path)) for level, path in paths.items() if level)


N_COLOURS = 10
_PASSAGES = 2  # passages of a match that are shown side by side; all are marked in the full text
_MARGIN = 120  # characters around a passage
_SENTENCE_MARGIN = 260  # characters around a sentence whose words match
_FIELD_CHARACTERS = 60  # most characters of the values of a metadata field that is listed


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a match."""

    section: int
    label: str
    pages: str  # of the strongest passage, or of the sentence whose words match
    excerpts: tuple[tuple[MarkedRun, ...], ...]  # with a gap between them
    is_begun: bool  # the section has text before the first excerpt
    is_ended: bool  # the last excerpt reaches the end of the section


@dataclass(frozen=True, slots=True)
class Match:
    """A section of the query that is shown, and its best counterpart."""

    number: int
    row: Mapping[str, Any]  # of the section
    part: Mapping[str, Any]  # of the section pair
    query: Side
    target: Side

    @property
    def colour(self) -> int:
        """Number of the colour, from 0."""
        return (self.number - 1) % N_COLOURS


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section of a document in full."""

    number: int  # from 0
    label: str
    pages: str
    contribution: float  # of all pairs that the section takes part in
    matches: tuple[int, ...]
    runs: tuple[MarkedRun, ...]  # a single run without marks if the section has no match


@dataclass(frozen=True, slots=True)
class HitView:
    """A hit, arranged for a report."""

    hit: Hit
    values: Mapping[str, Any]
    metadata: tuple[tuple[str, tuple[Scalar, ...]], ...]  # fields whose values are short enough to be listed
    matches: tuple[Match, ...]
    map: SectionMap
    query: tuple[SectionText, ...]
    target: tuple[SectionText, ...]
    model: tuple[tuple[float, str, str], ...]  # the strongest `model_pairs`; empty without such an explanation


def hit_views(result: Result, *, n_pairs: int = N_MATCHES) -> Iterator[HitView]:
    """The hits of a result, of which `n_pairs` section pairs each are shown, generated one at a time."""
    for hit, values in zip(result.hits, contract.hit_dicts(result, n_pairs=n_pairs), strict=True):
        yield hit_view(result.query, hit, values)


def hit_view(query: Document, hit: Hit, values: Mapping[str, Any]) -> HitView:
    """Arrange one hit."""
    rows, listed = values["by_section"]["rows"], contract.best_parts(values)
    documents = (query, hit.document)
    marks = tuple(list(_marks(side, listed)) for side in contract.SIDES)
    return HitView(
        hit=hit,
        values=values,
        metadata=tuple(_listed(hit.metadata)),
        matches=tuple(
            Match(
                number, row, part, *(_side(number, part, *side) for side in zip(contract.SIDES, documents, strict=True))
            )
            for number, (row, part) in enumerate(zip(rows, listed, strict=True), start=1)
        ),
        map=section_map(
            *documents, pair_columns(hit.breakdown.pairs), [contract.section_places(part) for part in listed]
        ),
        query=tuple(_sections(query, "query", hit, listed, marks[0])),
        target=tuple(_sections(hit.document, "target", hit, listed, marks[1])),
        model=tuple(contract.model_pairs(values, max(1, len(listed)))),
    )


def _listed(metadata: Mapping[str, MetadataValue]) -> Iterator[tuple[str, tuple[Scalar, ...]]]:
    """The fields to show: those with short values, without the counts and the kinds of sections that readers add."""
    for name, value in metadata.items():
        values = tuple(value) if isinstance(value, list) else (value,)
        n_characters = sum(len(str(value)) for value in values)
        if 0 < n_characters <= _FIELD_CHARACTERS and not name.startswith((LEFT_OUT, KIND)):
            yield name, values


def _marks(side: str, parts: Sequence[Mapping[str, Any]], first: int = 1) -> Iterator[Mark]:
    for number, part in enumerate(parts, first):
        for passages in part["spans"]:
            yield Mark(_span(passages[side]), number)
        yield from (Mark(span, number, is_word=True) for span in contract.spans(part["marks"][side]))


def _side(number: int, part: Mapping[str, Any], side: str, document: Document) -> Side:
    section = part[f"{side}_section"]
    whole = _span(section)
    whole = Span(after_heading(document, whole, section["index"]), whole.stop)
    passages = [_span(span[side]) for span in part["spans"][:_PASSAGES]]
    margin = _MARGIN if passages else _SENTENCE_MARGIN
    focuses = passages or [_span(part["quotes"][side])]
    shown = [_at_words(document.text, excerpt, whole) for excerpt in excerpts(whole, focuses, margin)]
    marks = [*_marks(side, [part], number)]
    return Side(
        section["index"],
        section_label(document, section["index"]),
        pages_label(contract.place_of(document, focuses[0])),
        tuple(tuple(marked_runs(document.text, excerpt, marks)) for excerpt in shown),
        is_begun=shown[0].start > whole.start,
        is_ended=shown[-1].stop == whole.stop,
    )


def _at_words(text: str, span: Span, whole: Span) -> Span:
    """A stretch, shortened to whole words at both ends."""
    start, stop = span.start, span.stop
    while whole.start < start < stop and not text[start - 1].isspace():
        start += 1
    while whole.stop > stop > start and not text[stop].isspace():
        stop -= 1
    return Span(start, stop) if start < stop else span


def _sections(
    document: Document, side: str, hit: Hit, parts: Sequence[Mapping[str, Any]], marks: Sequence[Mark]
) -> Iterator[SectionText]:
    columns = pair_columns(hit.breakdown.pairs)
    places = columns.query_sections if side == "query" else columns.target_sections
    contributions = np.bincount(places, columns.contributions, minlength=len(document.sections)).tolist()
    matches: dict[int, list[int]] = {}
    for number, part in enumerate(parts, start=1):
        matches.setdefault(part[f"{side}_section"]["index"], []).append(number)
    for index, section in enumerate(document.sections):
        span, numbers = section.span, matches.get(index, [])
        within = [mark for mark in marks if mark.match in numbers]
        runs = tuple(marked_runs(document.text, span, within))
        label = section_label(document, index)
        pages = pages_label(contract.place_of(document, span))
        yield SectionText(index, label, pages, contributions[index], tuple(numbers), runs)


def _span(place: Mapping[str, Any]) -> Span:
    return Span(place["start"], place["end"])


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a text that belongs to a match."""

    span: Span
    match: int  # number of the match; if marks overlap, the lowest number determines the colour
    is_word: bool = False  # a word that both texts have; else a passage


@dataclass(frozen=True, slots=True)
class MarkedRun:
    """A stretch of text with the same matches throughout."""

    matches: tuple[int, ...]  # numbers of the matches whose passages cover the run, rising
    pieces: tuple[tuple[str, bool], ...]  # text, and whether it is a marked word


def marked_runs(text: str, span: Span, marks: Iterable[Mark]) -> list[MarkedRun]:
    """Cut a stretch of a text where marks begin and end."""
    clipped = [
        (max(mark.span.start, span.start), min(mark.span.stop, span.stop), mark)
        for mark in marks
        if mark.span.start < span.stop and mark.span.stop > span.start
    ]
    edges = sorted({span.start, span.stop, *(edge for start, stop, _ in clipped for edge in (start, stop))})
    events: dict[int, list[tuple[bool, Mark]]] = {}
    for start, stop, mark in clipped:
        events.setdefault(start, []).append((True, mark))
        events.setdefault(stop, []).append((False, mark))
    runs: list[tuple[tuple[int, ...], list[tuple[str, bool]]]] = []
    passages: dict[int, int] = {}
    n_words = 0
    for start, stop in pairwise(edges):
        for begins, mark in events.get(start, ()):
            if mark.is_word:
                n_words += 1 if begins else -1
            else:
                passages[mark.match] = passages.get(mark.match, 0) + (1 if begins else -1)
        matches = tuple(sorted(match for match, count in passages.items() if count))
        if not runs or runs[-1][0] != matches:
            runs.append((matches, []))
        runs[-1][1].append((text[start:stop], n_words > 0))
    return [MarkedRun(matches, tuple(pieces)) for matches, pieces in runs]


def excerpts(section: Span, focuses: Sequence[Span], margin: int) -> list[Span]:
    """The excerpts of a long section that are shown: the focuses with a margin around each, joined where they meet."""
    shown: list[Span] = []
    for focus in sorted(focuses, key=lambda span: span.start):
        start, stop = max(section.start, focus.start - margin), min(section.stop, focus.stop + margin)
        if shown and start <= shown[-1].stop:
            shown[-1] = Span(shown[-1].start, max(stop, shown[-1].stop))
        else:
            shown.append(Span(start, stop))
    return shown


_N_NOVELTY_PAIRS = 3  # of each section
_STATUS = {
    Status.CERTIFIED: "Every document that could be found was scored completely. The ranking is exact.",
    Status.ESTIMATED: "An approximate index, or words, chose the documents that were scored. Every hit was scored "
    "completely. A document that was not chosen could belong here; an exact search scores all.",
    Status.PARTIAL: "Evidence is missing: the query was not read to its end, its chunks were pooled, or documents "
    "have no vectors yet.",
}


def result_page(results: Sequence[Result], *, n_pairs: int | None = None, command: str = "") -> str:
    """The report of one or several results of the same mode, or of a comparison.

    Args:
        n_pairs: section pairs shown for each hit; by default 10, for novelty 3.
    """
    is_novelty = results[0].sections is not None
    n_shown = N_MATCHES if n_pairs is None else n_pairs
    views = []
    for result in results:
        shown: Iterator[HitView | SectionView]
        shown = _document_sections(result, n_pairs) if is_novelty else hit_views(result, n_pairs=n_shown)
        views.append(_ResultView(result, contract.head_dict(result), tuple(shown)))
    if is_novelty:
        return render("novelty.html", views=views, command=command, notes=_NOVELTY_STATUS)
    return render("evidence.html", views=views, command=command, background=results[0].background)


def result_pieces(result: Result) -> Iterator[tuple[str, str]]:
    """The report of one query piece by piece, for a page that shows each piece as it arrives.

    Returns:
        Kind and HTML of each piece: "head", "hit" for each hit or each section of a novelty, "tail".
    """
    if result.sections is None:
        most = result.hits[0].score if result.hits else 0.0
        yield "head", render("pieces/head.html", result=result)
        for view in hit_views(result, n_pairs=N_MATCHES):
            yield "hit", render("pieces/hit.html", result=result, one=view, most=most)
    else:
        yield "head", render("pieces/novelty_head.html", result=result, note=_NOVELTY_STATUS[result.status])
        for section in _document_sections(result):
            yield "hit", render("pieces/section.html", result=result, one=section)
    yield "tail", render("pieces/tail.html", result=result, values=contract.head_dict(result))


def unbroken(text: str) -> str:
    """A text whose percentages stay on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def asset(name: str) -> str:
    """A style sheet or a script of the report, as text."""
    return files("engine.report").joinpath("templates", name).read_text(encoding="utf-8")


def render(template: str, **values: Any) -> str:  # noqa: ANN401
    """Fill a template of `engine/report/templates`."""
    return printable(_environment().get_template(template).render(**values))  # a name of a file may not be Unicode


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("engine.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "pages": pages_label,
        "counted": lambda items, noun: counted(items if isinstance(items, int) else len(items), noun),
        "number": lambda value: f"{value:.4f}",
        "percent": lambda share: unbroken(contract.percent(share)),
    }
    notes = (
        table.coverage_note,
        table.encoding_lines,
        table.floor_note,
        table.language_note,
        table.no_hits,
        contract.reference_notes,
        contract.rest_note,
        table.stock_note,
    )
    environment.globals |= {function.__name__: function for function in (*notes, table.undated_note)}
    environment.globals |= {
        "summary": lambda hit: unbroken(contract.summary(hit)),
        "quoted": lambda quote: quote_runs(*window(quote["text"], tuple(contract.spans(quote["marks"])), _QUOTE)),
        "no_floor": table.NO_FLOOR_OF_SECTIONS,
        "query_sections": _query_sections,
        "status_note": _STATUS.__getitem__,
    }
    return environment


def _query_sections(query: Document) -> Iterator[tuple[str, str, str]]:
    """Label, pages and text of each section."""
    for index, section in enumerate(query.sections):
        span = section.span
        yield (
            section_label(query, index),
            pages_label(contract.place_of(query, span)),
            query.text[span.start : span.stop],
        )


_NOVELTY_STATUS = {
    Status.CERTIFIED: "Every document was scored for every section. No document contains more of a section than the "
    "one that is named with it.",
    Status.ESTIMATED: "Every document was scored for every section, those without vectors by words alone. One of them "
    "could contain more of a section than the one that is named with it.",
    Status.PARTIAL: "Evidence is missing: the query was not read to its end, its chunks were pooled, or documents "
    "have no vectors yet. A section can be less novel than it is shown.",
}


@dataclass(frozen=True, slots=True)
class SectionView:
    """A section of the query, and its nearest document."""

    rank: int  # 1 is the most novel
    section: SectionNovelty
    pages: str
    text: SectionText  # of the section, with matches marked
    nearest: HitView | None  # None where no document shares anything with the section
    target: tuple[SectionText, ...]  # sections of the nearest document that match


@dataclass(frozen=True, slots=True)
class _ResultView:
    result: Result
    values: Mapping[str, Any]  # of the result, without its hits
    hits: tuple[HitView | SectionView, ...]  # sections of a novelty


def _document_sections(result: Result, n_pairs: int | None = None) -> Iterator[SectionView]:
    query, hits = result.query, hit_views(result, n_pairs=_N_NOVELTY_PAIRS if n_pairs is None else n_pairs)
    for rank, section in enumerate(result.sections or (), start=1):
        pages = pages_label(contract.place_of(query, section.span))
        if section.hit is None:
            runs = tuple(marked_runs(query.text, section.span, []))
            text = SectionText(section.section, section.heading, pages, 0.0, (), runs)
            yield SectionView(rank, section, pages, text, None, ())
        else:
            view = next(hits)
            target = tuple(section for section in view.target if section.matches)
            yield SectionView(rank, section, pages, view.query[section.section], view, target)


_PAIRS = 5
_QUOTE = 320  # most characters of a quote


def result_html(result: Result) -> str:
    """The hits of one query; each opens to its section pairs with quotes of both sides."""
    values = contract.result_dict(result, n_pairs=_PAIRS)
    best = max((hit["score"] for hit in values["hits"]), default=1.0)
    return render("notebook/result.html", result=result, values=values, best=best)
