"""The novelty of the sections of a query as one offline file, and piece by piece for the page of a server.

All numbers are those of `Novelty.to_dict`. The nearest document of a section is shown like a hit of a report, without
the sections that do not match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.novelty import N_PAIRS, Novelty, SectionNovelty
from engine.report.contract import novelty_dict
from engine.report.evidence import HitView, SectionText, hit_view, pages_label
from engine.report.marked_text import marked_runs
from engine.report.page import render
from engine.result import Status
from engine.text.spans import Span

_STATUS = {
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
class NoveltyView:
    """The sections of a query, most novel first."""

    result: Novelty
    values: Mapping[str, Any]  # `Novelty.to_dict`
    sections: tuple[SectionView, ...]


def novelty_page(found: Sequence[Novelty], *, n_pairs: int = N_PAIRS, command: str = "") -> str:
    """The report of one or several queries.

    Args:
        found: results of `Index.novelty`.
        n_pairs: section pairs shown for each section.
        command: the command line that made the report, shown at its end.
    """
    views = [novelty_view(one, n_pairs=n_pairs) for one in found]
    return render("novelty.html", views=views, command=command, notes=_STATUS)


def novelty_pieces(found: Novelty, *, n_pairs: int = N_PAIRS) -> Iterator[tuple[str, str]]:
    """The report of one query piece by piece: "head", "hit" for each section, "tail".

    Args:
        found: from `Index.novelty`.
        n_pairs: section pairs shown for each section.
    """
    view = novelty_view(found, n_pairs=n_pairs)
    yield "head", render("pieces/novelty_head.html", result=found, note=_STATUS[found.status])
    for one in view.sections:
        yield "hit", render("pieces/section.html", result=found, one=one)
    yield "tail", render("pieces/tail.html", result=found, values=view.values)


def novelty_view(found: Novelty, *, n_pairs: int = N_PAIRS) -> NoveltyView:
    """Arrange the novelty of a query for a report.

    Args:
        found: from `Index.novelty`.
        n_pairs: section pairs shown for each section.
    """
    values = novelty_dict(found, n_pairs=n_pairs)
    sections = (_section(found, rank, *one) for rank, one in enumerate(zip(found, values["sections"], strict=True), 1))
    return NoveltyView(found, values, tuple(sections))


def _section(found: Novelty, rank: int, one: SectionNovelty, values: Mapping[str, Any]) -> SectionView:
    pages = pages_label(values["section"])
    if one.hit is None:
        runs = tuple(marked_runs(found.query.text, Span(one.span.start, one.span.stop), []))
        return SectionView(rank, one, pages, SectionText(one.section, one.heading, pages, 0.0, (), runs), None, ())
    view = hit_view(found.query, one.hit, values["hit"])
    target = tuple(section for section in view.target if section.matches)
    return SectionView(rank, one, pages, view.query[one.section], view, target)
