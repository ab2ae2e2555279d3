"""Which sections a search leaves out of the query and of its targets, by kind or by a weight of 0. Scores nothing.

The query loses the terms of such sections, and their chunks have the weight 0. If a kind is left out, targets also
lose the terms and the chunks of their sections of that kind (`engine.store.gathering`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.errors import QueryError
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.spans import Span


def left_out_sections(
    kinds: Sequence[SectionKind], skip: Collection[SectionKind], weights: Sequence[float] = ()
) -> NDArray[np.bool_]:
    """Which sections of a query are left out, (A,); [False] for a document without sections.

    Args:
        kinds: of the A sections.
        skip: kinds to leave out.
        weights: of the sections, of which those of weight 0 are left out; () where all are 1.
    """
    of_kind = np.array([kind in skip for kind in kinds] or [False])
    return of_kind | (np.array(weights) == 0) if len(weights) else of_kind


def query_stretches(
    query: Document, left_out: NDArray[np.bool_], common: Sequence[Span], names: Iterable[str]
) -> list[Span]:
    """The stretches of a query that are left out of its evidence: some of its sections, and common sentences.

    Args:
        query: the document to search with.
        left_out: from `left_out_sections`.
        common: stretches of common sentences.
        names: of the sections that are left out, for the error.

    Returns:
        Stretches in reading order that do not overlap.

    Raises:
        QueryError: nothing of the query would be left.
    """
    skipped = [Span(query.sections[at].start, query.sections[at].stop) for at in np.flatnonzero(left_out).tolist()]
    if not skipped:
        return list(common)
    merged = _merged([*skipped, *common])
    left, at = "", 0
    for stretch in merged:
        left += query.text[at : stretch.start].strip()
        at = stretch.stop
    if not left and not query.text[at:].strip():
        named = ", ".join(names)
        raise QueryError(f"the query {query.title!r} has no section but those to be skipped ({named}); skip fewer")
    return merged


def _merged(stretches: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for one in sorted(stretches, key=lambda stretch: (stretch.start, stretch.stop)):
        if merged and one.start <= merged[-1].stop:
            merged[-1] = Span(merged[-1].start, max(merged[-1].stop, one.stop))
        else:
            merged.append(one)
    return merged
