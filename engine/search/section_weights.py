"""Weights of the sections of a query, by kind, heading or number. Scores nothing.

The weight of a section is that of the most specific name that fits: its number, its own heading, the nearest heading
above it, its kind by the metadata of the query, its kind by its headings and text, see `engine.search.section_names`.
Numbers are those of `longmatch show`, from 1. Case and the number of a heading are ignored, so `pumps` names a
section "3.1 Pumps". A section that no name fits has the weight 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from engine.errors import QueryError
from engine.search.query import Query
from engine.search.section_names import KINDS, key_of, names_of_sections
from engine.text.document import Document
from engine.text.section_kinds import SectionKind, section_kinds

MOST_WEIGHT = 1_000_000
_N_NAMED = 5  # headings that an error lists


def with_section_weights(query: Query, skip: Collection[str], weights: Mapping[str, float]) -> Query:
    """A query whose sections are skipped or weighted.

    Args:
        query: a document with its vectors.
        skip: names of kinds to leave out, of the query and of targets.
        weights: by kind, heading or number.

    Raises:
        QueryError: a weight cannot be used.
    """
    kinds = section_kinds(query.document) if skip or weights else query.kinds
    of_sections = section_weights(query.document, weights, kinds) if weights else ()
    skipped = frozenset(map(SectionKind, skip))
    in_targets = skipped | kinds_without_weight(weights)
    return replace(query, skip=skipped, skip_in_targets=in_targets, section_weights=of_sections, kinds=kinds)


def section_weights(
    document: Document, weights: Mapping[str, float], kinds: Sequence[SectionKind] | None = None
) -> tuple[float, ...]:
    """The weight of each section of a document; () where all are 1.

    Args:
        document: a query.
        weights: by kind, heading or number, each at least 0.
        kinds: of the sections; computed by default.

    Raises:
        QueryError: a weight is not such a number, two names are the same, or a name fits no section and is not a kind.
    """
    given: dict[str, float] = {}
    for name, weight in weights.items():
        _check(name, weight)
        key = key_of(name)
        if key in given:
            raise QueryError(f"two weights name the same sections, {name!r} the second time; give one")
        given[key] = float(weight)
    names = names_of_sections(document, kinds)
    known = {name for of_section in names for name in of_section}
    for name in weights:
        if key_of(name) not in known and key_of(name) not in KINDS:
            raise QueryError(f"no section of {document.doc_id} is named {name!r}; {_hint(document, name)}")
    found = tuple(next((given[name] for name in of_section if name in given), 1.0) for of_section in names)
    return () if all(weight == 1 for weight in found) else found


def kinds_without_weight(weights: Mapping[str, float]) -> frozenset[SectionKind]:
    """The kinds, except body, that have the weight 0 by their own names, which is the same as skipping them."""
    names = {key_of(name) for name, weight in weights.items() if not weight}
    return frozenset(kind for kind in SectionKind if kind is not SectionKind.BODY and kind.value in names)


def _check(name: object, weight: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise QueryError(f"the section {name!r:.40} is no name; name a heading, a kind or a number as text")
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not 0 <= weight <= MOST_WEIGHT:  # type: ignore[operator]
        raise QueryError(f"the weight of {name!r} is {weight!r:.40}; it must be a number from 0 to {MOST_WEIGHT:,}")


def _hint(document: Document, name: str) -> str:
    headings = list(dict.fromkeys(section.heading for section in document.sections if section.heading))
    by_key = {key_of(heading): heading for heading in headings}
    similar = [by_key[key] for key in difflib.get_close_matches(key_of(name), by_key, 2, cutoff=0.6)]
    if similar:
        return f"did you mean {' or '.join(map(repr, similar))}?"
    listed = ", ".join(map(repr, headings[:_N_NAMED])) + (", …" if len(headings) > _N_NAMED else "")
    kinds = ", ".join(sorted(KINDS))
    return f"name a heading ({listed or 'it has none'}), a kind ({kinds}) or a number to {len(document.sections)}"
