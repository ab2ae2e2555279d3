"""The score of a hit by section of the query, and the words for it. Scores nothing.

A section is covered if it stands out: it adds at least `STANDS_OUT` times what it would add to a score at the floor of
the index, if the document matched all sections evenly. Sections of the body are counted; of a query without body, all.
Without a floor, which sections are covered is not known. A section of the body that is at least half of stock sentences
is boilerplate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from engine.report.lines import counted
from engine.result import Result
from engine.scoring.evidence import Floor
from engine.scoring.parts import SectionPair, SectionSums, pair_columns
from engine.text.document import Document
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import Span
from engine.words.common_sentences import kept_shares

STANDS_OUT = 1.5  # times the floor; one of twenty sections reaches it with an unrelated document. Of a whole query, 1
_LEAST_CHARACTERS = 40  # of a section that is counted; a shorter one is hardly more than its heading
_LEAST_STOCK = 0.5  # of the characters of a section
_N_NAMED = 2
_N_REFERENCES = 4  # that both texts cite, named in a sentence
_LEAST_NAMED = 0.05  # share of the score


@dataclass(frozen=True, slots=True)
class SectionShare:
    """All that a section of the query adds to the score of a hit."""

    section: int
    kind: SectionKind
    contribution: float
    words: float
    n_pairs: int
    best: int | None  # place of its strongest pair among those of the hit; None if the section was not divided
    is_covered: bool | None


@dataclass(frozen=True, slots=True)
class SectionShares:
    """The sections that add something: those of the body first, the strongest first among each."""

    rows: tuple[SectionShare, ...]
    n_sections: int  # that are counted
    n_covered: int | None

    def divided(self, n_most: int) -> tuple[SectionShare, ...]:
        """The first rows that were divided into pairs; the others come last."""
        return tuple(row for row in self.rows[: max(0, n_most)] if row.best is not None)

    def listed(self, n_most: int, n_pairs: int) -> dict[int, bool]:
        """The places of the pairs to list, rising, and whether each is the best of a row: these come first."""
        bests = {row.best for row in self.divided(n_most) if row.best is not None}
        others = islice((at for at in range(n_pairs) if at not in bests), max(0, n_most) - len(bests))
        return {at: at in bests for at in sorted([*bests, *others])}

    def strongest(self) -> tuple[SectionShare, ...]:
        """The one or two sections that a sentence about the hit names."""
        least = _LEAST_NAMED * sum(row.contribution for row in self.rows)
        return tuple(row for row in self.rows[:_N_NAMED] if row.contribution >= least)


class QuerySections:
    """The sections of a query, for all hits of its result. Letter in shapes: S sections."""

    def __init__(self, query: Document, kinds: Sequence[SectionKind], floor: Floor | None) -> None:
        """Measure the sections, of some kinds; the floor is that of the index for the query."""
        self.kinds = kinds
        self.is_body = np.array([kind is SectionKind.BODY for kind in kinds], bool)
        sizes = np.array([len(query.text[one.start : one.stop].strip()) for one in query.sections], np.float64)
        is_counted = (self.is_body if self.is_body.any() else ~self.is_body) & (sizes > 0)
        is_long = is_counted & (sizes >= _LEAST_CHARACTERS)
        self.is_counted = is_long if is_long.any() else is_counted  # (S,)
        shares = sizes / max(1.0, float(sizes[self.is_counted].sum()))
        margins = STANDS_OUT - (STANDS_OUT - 1) * np.minimum(shares, 1)
        self.floors = None if floor is None else floor.p99 * shares * margins  # (S,) what each must add to stand out

    @classmethod
    def of(cls, result: Result) -> QuerySections:
        """The sections of the query of a result; those of mostly stock sentences are boilerplate."""
        query, kinds = result.query, section_kinds(result.query)
        spans = [Span(section.start, section.stop) for section in query.sections]
        left = kept_shares([sentence.span for sentence in result.stock], spans)
        is_stock = (left <= 1 - _LEAST_STOCK).tolist()
        own = [
            SectionKind.BOILERPLATE if stock and kind is SectionKind.BODY else kind
            for kind, stock in zip(kinds, is_stock, strict=True)
        ]
        return cls(query, own, result.floor)


def section_shares(
    sections: QuerySections, pairs: Sequence[SectionPair], sums_of_all: SectionSums | None = None
) -> SectionShares:
    """Sum the section pairs of a hit by section of the query.

    Args:
        pairs: of the hit, the strongest of each section of the query before its others.
        sums_of_all: `Breakdown.sections`; the sections of a very long query that are not divided come last.
    """
    columns, n_sections, is_covered = pair_columns(pairs), len(sections.kinds), None
    own = columns.query_sections
    if sums_of_all is None:
        values = columns.contributions, columns.words
        sums, words = (np.bincount(own, one, n_sections).astype(np.float64) for one in values)
    else:
        sums, words = sums_of_all.contributions, sums_of_all.words
    n_pairs = np.bincount(own, minlength=n_sections)
    bests = np.full(n_sections, -1)
    bests[own[::-1]] = np.arange(len(own))[::-1]
    if sections.floors is not None:
        is_covered = sections.is_counted & (sums > 0) & (sums >= sections.floors)
    rows = (
        SectionShare(
            at,
            sections.kinds[at],
            float(sums[at]),
            float(words[at]),
            int(n_pairs[at]),
            int(bests[at]) if n_pairs[at] else None,
            None if is_covered is None else bool(is_covered[at]),
        )
        for at in np.lexsort((-sums, ~sections.is_body, n_pairs == 0)).tolist()
        if sums[at]
    )
    n_covered = None if is_covered is None else int(is_covered.sum())
    return SectionShares(tuple(rows), int(sections.is_counted.sum()), n_covered)


def summary(hit: Mapping[str, Any]) -> str:
    """A hit in one sentence: "covers 7 of 11 sections; strongest in Claims and Background"."""
    values = hit["by_section"]
    n_sections, n_covered, names = values["n_sections"], values["n_covered"], " and ".join(values["strongest"])
    if n_covered is None:
        return f"is strongest in {names}" if names else "matches in small parts"
    counts = f"covers {n_covered} of {counted(n_sections, 'section')}"
    above = hit.get("above")
    place = "" if above is None else f"above {above} % of unrelated pairs" if above else "like unrelated documents"
    return "; ".join(filter(None, (counts, names and f"strongest in {names}", place)))


def reference_notes(hit: Mapping[str, Any]) -> list[str]:
    """What both documents cite, whether one cites the other, and documents that the hit stands for, as sentences."""
    values = hit["references"]
    notes = [f"the query cites it, in {values['query_cites'][0]['label']}"] if values["query_cites"] else []
    notes += [f"it cites the query, in {values['target_cites'][0]['label']}"] if values["target_cites"] else []
    if values["shared"]:
        first, *others = values["shared"][:_N_REFERENCES]
        names = [f"{first['name']}, in {first['query'][0]['label']} and in {first['target'][0]['label']}"]
        names += [reference["name"] for reference in others]
        n_more = values["n_shared"] - len(names)
        notes.append(f"both cite {'; '.join(names)}{f'; {n_more} more' if n_more else ''}")
    if others := hit.get("others", ()):
        n_more = len(others) - _N_REFERENCES
        notes.append(
            f"of the same group: {'; '.join(others[:_N_REFERENCES])}{f'; {n_more} more' if n_more > 0 else ''}"
        )
    return notes


def rest_note(hit: Mapping[str, Any]) -> tuple[float, str]:
    """The share of the score that no row holds, and its kinds in words; (0, "") where the rows hold all."""
    kinds = hit["by_section"]["rest"]
    total = sum(one["share"] for one in kinds)
    names = [_kind_name(one["kind"], one["n_sections"]) for one in kinds]
    if len(kinds) == 1:
        return total, names[0]
    return total, ", ".join(f"{name} {percent(one['share'])}" for name, one in zip(names, kinds, strict=True))


def _kind_name(kind: str, n_sections: int) -> str:
    match kind:
        case "body":
            return counted(n_sections, "more section")
        case "small":
            return "small section pairs"
        case _:
            return kind


def percent(share: float) -> str:
    """A share of a score as "33.8 %"."""
    return f"{100 * share:.1f} %"
