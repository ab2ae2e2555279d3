"""A run: what one system ranked for every query. Made, timed and written here; judged elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from benchmarks.systems import Ranking, System
from engine.document import Document

Run: TypeAlias = dict[str, Ranking]  # by query id


def rank(system: System, queries: Iterable[Document], k: int) -> tuple[Run, float]:
    """Ask every query, one after the other, to depth `k`.

    Returns:
        The run, and the seconds that all searches took together.
    """
    started = time.perf_counter()
    run = {query.doc_id: system.search(query, k) for query in queries}
    return run, time.perf_counter() - started


def write_trec(run: Mapping[str, Ranking], path: Path, tag: str) -> None:
    """Write the six columns of trec_eval: query, Q0, target, rank from 1, score, tag.

    trec_eval takes the order from the score and breaks ties by name; the ranks
    keep ours.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for query_id, ranking in run.items():
            for number, (doc_id, score) in enumerate(ranking, start=1):
                file.write(f"{query_id} Q0 {doc_id} {number} {score:.8g} {tag}\n")
