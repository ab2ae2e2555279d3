"""A run: what one system ranked for every query. Made and timed here; judged and written elsewhere."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

from benchmarks.formats.trec import section_target
from benchmarks.systems import Evidence, Ranking, System
from engine.document import Document
from engine.result import Hit

Run: TypeAlias = dict[str, Ranking]  # by query id


def rank(system: System, queries: Iterable[Document], k: int) -> tuple[Run, float]:
    """Ask every query, one after the other, to depth `k`.

    Returns:
        The run, and the seconds that all searches took together.
    """
    started = time.perf_counter()
    run = {query.doc_id: system.search(query, k) for query in queries}
    return run, time.perf_counter() - started


def rank_sections(system: Evidence, queries: Iterable[Document], k: int) -> Run:
    """Ask every query, and rank the sections of its `k` best documents as targets of their own."""
    return {query.doc_id: section_ranking(system.hits(query, k)) for query in queries}


def section_ranking(hits: Iterable[Hit]) -> Ranking:
    """The sections that scores come from, `DOC#SEC`: what each contributes to the score of its document, best first.

    Equal ones keep the order of the hits. What the likeness of whole documents adds belongs to no section.
    """
    contribution: defaultdict[str, float] = defaultdict(float)
    for hit in hits:
        for pair in hit.breakdown.pairs:
            contribution[section_target(hit.doc_id, pair.target_section)] += pair.contribution
    return sorted(contribution.items(), key=lambda item: -item[1])
