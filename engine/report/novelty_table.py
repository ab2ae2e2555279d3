"""The novelty of the sections of a query as lines for a terminal. Prints nothing."""

from __future__ import annotations

from engine.novelty import Novelty, SectionNovelty
from engine.report.lines import Line, Run, Style, cut, line, plain
from engine.report.table import WIDTH, coverage_note, encoding_lines, hit_lines

N_PAIRS = 1
_NOTHING = "nothing to compare: the section has no content words"


def novelty_table(found: Novelty, *, n_pairs: int = N_PAIRS, width: int = WIDTH) -> str:
    """`novelty_lines` as plain text; words that both texts have are between asterisks."""
    return plain(novelty_lines(found, n_pairs=n_pairs, width=width, has_styles=False))


def novelty_lines(found: Novelty, *, n_pairs: int = N_PAIRS, width: int = WIDTH, has_styles: bool = True) -> list[Line]:
    """The sections, most novel first, each with the document that contains most of it.

    Args:
        found: from `Index.novelty`.
        n_pairs: section pairs shown for each section.
        width: columns of the terminal.
        has_styles: whether the output shows styles; otherwise words that both texts have get asterisks.
    """
    searched = f"{found.n_searched:,} searched for each section, {found.status.value}"
    notes = [f"{coverage_note(found.query_coverage)}; {searched}", f"{len(found)} sections, most novel first"]
    if found.encoding is not None:
        notes += encoding_lines(found.encoding)
    lines = [cut(line(Run("query  ", Style.FAINT), Run(found.query.title, Style.TITLE)), width)]
    lines += [cut(line(Run(f"       {note}", Style.FAINT)), width) for note in notes]
    for number, one in enumerate(found, start=1):
        lines += [(), *_section(found, number, one, n_pairs, width, has_styles)]
    return lines


def _section(
    found: Novelty, number: int, one: SectionNovelty, n_pairs: int, width: int, has_styles: bool
) -> list[Line]:
    novelty = "   -  " if one.novelty is None else f"{one.novelty:.4f}"
    pages = found.query.page_numbers(one.span)
    place = f"  p. {pages[0]}" if pages else ""
    head = line(
        f"{number:>3}  ", Run(novelty, Style.NUMBER), "  ", Run(one.heading, Style.TITLE), Run(place, Style.FAINT)
    )
    lines = [cut(head, width)]
    if one.novelty is None:
        return [*lines, cut(line(Run(f"     {_NOTHING}", Style.FAINT)), width)]
    if one.hit is None:
        return [*lines, cut(line(Run("     no document shares anything with it", Style.FAINT)), width)]
    best = line("     ", Run(f"{one.hit.score:.4f}", Style.NUMBER), "  is in ", Run(one.hit.title, Style.TITLE))
    lines.append(cut((*best, *line(Run(f"  {one.hit.doc_id}", Style.FAINT))), width))
    return [*lines, *hit_lines(one.hit.own_result(), one.hit, n_pairs, width, has_styles=has_styles)]
