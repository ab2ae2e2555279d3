"""The score of a hit by section of the query, and the words for it. Scores nothing.

A section is covered if it adds at least `COVERED` times its share of the text: as much as a document with that score
adds for each section, if it matches all evenly. Sections of the body are counted; of a query without body, all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.scoring.breakdown import SectionPair, pair_columns
from engine.text.document import Document
from engine.text.section_kinds import SectionKind

COVERED = 0.3  # a score that documents on other subjects do not reach
_LEAST_CHARACTERS = 40  # of a section that is counted; a shorter one is hardly more than its heading
_N_NAMED = 2
_LEAST_NAMED = 0.05  # share of the score


@dataclass(frozen=True, slots=True)
class SectionShare:
    """All that a section of the query adds to the score of a hit."""

    section: int
    kind: SectionKind
    contribution: float
    words: float
    n_pairs: int
    best: int  # place of its strongest pair among the section pairs of the hit
    is_covered: bool


@dataclass(frozen=True, slots=True)
class SectionShares:
    """The sections that add something: those of the body first, the strongest first among each."""

    rows: tuple[SectionShare, ...]
    n_sections: int  # that are counted
    n_covered: int

    def strongest(self) -> tuple[SectionShare, ...]:
        """The one or two sections that a sentence about the hit names."""
        least = _LEAST_NAMED * sum(row.contribution for row in self.rows)
        return tuple(row for row in self.rows[:_N_NAMED] if row.contribution >= least)


def section_shares(query: Document, kinds: Sequence[SectionKind], pairs: Sequence[SectionPair]) -> SectionShares:
    """Sum the section pairs of a hit by section of the query.

    Args:
        query: the document that was searched with.
        kinds: of its sections.
        pairs: of the hit, the strongest of each section of the query before its others.
    """
    columns, n_sections = pair_columns(pairs), len(query.sections)
    sums, words = (
        np.bincount(columns.query_sections, values, minlength=n_sections)
        for values in (columns.contributions, columns.words)
    )
    n_pairs = np.bincount(columns.query_sections, minlength=n_sections)
    best = dict(zip(*(one.tolist() for one in np.unique(columns.query_sections, return_index=True)), strict=True))
    is_body = np.array([kind is SectionKind.BODY for kind in kinds], bool)
    sizes = np.array([len(query.text[one.start : one.stop].strip()) for one in query.sections], np.float64)
    is_counted = (is_body if is_body.any() else ~is_body) & (sizes > 0)
    is_long = is_counted & (sizes >= _LEAST_CHARACTERS)
    is_counted = is_long if is_long.any() else is_counted
    least = COVERED * sizes / max(1.0, float(sizes[is_counted].sum()))
    is_covered = is_counted & (n_pairs > 0) & (sums >= least)
    rows = (
        SectionShare(at, kinds[at], float(sums[at]), float(words[at]), int(n_pairs[at]), best[at], bool(is_covered[at]))
        for at in np.lexsort((-sums, ~is_body)).tolist()
        if n_pairs[at]
    )
    return SectionShares(tuple(rows), int(is_counted.sum()), int(is_covered.sum()))


def summary(hit: Mapping[str, Any]) -> str:
    """A hit in one sentence: "covers 7 of 11 sections; strongest in Claims and Background".

    Args:
        hit: from `Result.to_dict`.
    """
    values = hit["by_section"]
    n_sections = values["n_sections"]
    counts = f"covers {values['n_covered']} of {n_sections} {'section' if n_sections == 1 else 'sections'}"
    names = " and ".join(values["strongest"])
    above = hit.get("above")
    place = "" if above is None else f"; above {above} % of unrelated pairs" if above else "; like unrelated documents"
    return (f"{counts}; strongest in {names}" if names else counts) + place


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
            return f"{n_sections:,} more {'section' if n_sections == 1 else 'sections'}"
        case "small":
            return "small section pairs"
        case _:
            return kind


def percent(share: float) -> str:
    """A share of a score as "33.8 %"."""
    return f"{100 * share:.1f} %"
