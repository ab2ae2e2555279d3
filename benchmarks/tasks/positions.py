"""Measures position bias: the contributions to the scores of hits by tenth of queries and of targets; writes a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Qrels, checksum, read_qrels, read_queries
from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import task
from benchmarks.runs import Case, Run
from benchmarks.sections.parts import term_places
from benchmarks.systems import Evidence
from engine.encoders.files import BUNDLED_NAME
from engine.text.document import Document
from engine.views import Hit
from engine.words.segmenter import WordSegmenter, segmenter_of
from engine.words.titles import title_span

N_TENTHS = 10
SIDES = ("query", "target")
GROUPS = {"all": "hits", "relevant": "relevant hits"}  # the k best hits of each query, and the relevant ones among them
DOCUMENT = "document"
_NOTE = (
    "Share of the contributions of passages and words that lies in each tenth of the text: a hit counts 1, then a "
    "query counts 1; 0.100 everywhere is no bias. Whole documents: the share of a score that the document vectors "
    "gave, over all hits; one that they gave entirely has no place in the text."
)


@dataclass(frozen=True)
class PositionDetails:
    """The details of a run, besides its cases, each of which is a query and a group of its hits."""

    k: int  # hits of a query


@dataclass(frozen=True)
class HitMass:
    """The contributions to one score by position."""

    sides: NDArray[np.float64] | None  # (2, 10) by side and tenth, each side sums to 1; None if no part contributed
    document_share: float  # share of the document vectors in the score, in [0, 1]; it has no position


def position_table(runs: Sequence[Run]) -> str:
    """A row for each task, encoder, group of hits and side; "" without runs."""
    if not runs:
        return ""
    head = ["Task (queries)", "Encoder", "Hits", "Side", *map(str, range(1, N_TENTHS + 1)), "Whole documents"]
    rows = [row for run in runs for group in GROUPS for row in _rows(run, group)]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(runs)])


def _rows(run: Run, group: str) -> list[list[str]]:
    """A row for each side; no rows if no hit of the group has contributions with a position."""
    cases = [case for case in run.cases if case.labels["hits"] == group]
    placed = [case for case in cases if case.facts["placed"]]
    if not placed:
        return []
    n_queries = sum(int(case.facts.get("queries", 1)) for case in cases)
    n_hits, n_placed = (int(sum(case.facts[name] for case in cases)) for name in ("hits", "placed"))
    without = f", {n_hits - n_placed:,} without a place" if n_hits > n_placed else ""
    split = "" if run.split == "test" else f", {run.split}"
    return [
        [
            f"{run.corpus}{split} ({n_queries})",
            run.encoder_name,
            f"{n_hits:,} {GROUPS[group]} of the first {run.details_as(PositionDetails).k}{without}",
            side,
            *(f"{_mean(placed, f'{side} {tenth}'):.3f}" for tenth in range(1, N_TENTHS + 1)),
            f"{_mean(cases, DOCUMENT):.3f}",
        ]
        for side in SIDES
    ]


def _mean(cases: Sequence[Case], measure: str) -> float:
    return float(np.mean([case.values[measure] for case in cases]))


def tenths(spans: NDArray[np.int64], contributions: NDArray[np.float64], n_chars: int) -> NDArray[np.float64]:
    """Spread (n,) contributions evenly over their (n, 2) spans, and sum them by tenth of the text: (10,)."""
    edges = np.linspace(0, n_chars, N_TENTHS + 1)
    inside = np.minimum(spans[:, 1:], edges[1:]) - np.maximum(spans[:, :1], edges[:-1])  # (n, 10)
    mass: NDArray[np.float64] = contributions / (spans[:, 1] - spans[:, 0]) @ np.maximum(inside, 0)
    return mass


def hit_mass(hit: Hit, query: Document, segmenter: WordSegmenter) -> HitMass | None:
    """The contributions to the score of a hit by position; None if there are none."""
    breakdown = hit.breakdown
    whole = breakdown.document.contribution if breakdown.document else 0.0
    parts = [part for pair in breakdown.pairs for part in pair.parts]
    passages = np.array([part.contribution for part in parts])
    sides = []
    for document, spans in (
        (query, [part.query for part in parts]),
        (hit.document, [part.target for part in parts]),
    ):
        found = segmenter.segment(document.text)
        places, words = term_places(found, breakdown.terms, title_span(document))
        ends = np.array([[span.start, span.stop] for span in spans], np.int64).reshape(-1, 2)
        sides.append(tenths(np.concatenate([ends, places]), np.concatenate([passages, words]), len(document.text)))
    total = sides[0].sum()
    if not total:
        return HitMass(None, 1.0) if whole else None
    return HitMass(np.stack(sides) / total, whole / (whole + total))


def position_cases(
    hits: Callable[[Document], Sequence[Hit]], queries: Mapping[str, Document], qrels: Qrels, segmenter: WordSegmenter
) -> list[Case]:
    """Search with every query; a case for each of `GROUPS` in which the query has hits."""
    cases = []
    for query_id, query in queries.items():
        found = [(hit.doc_id, mass) for hit in hits(query) if (mass := hit_mass(hit, query, segmenter))]
        relevant = [mass for doc_id, mass in found if qrels[query_id].get(doc_id, 0) > 0]
        for group, masses in zip(GROUPS, ([mass for _, mass in found], relevant), strict=True):
            if masses:
                cases.append(position_case(query_id, group, masses))
    return cases


def position_case(query_id: str, group: str, hits: Sequence[HitMass]) -> Case:
    """The averages over the hits of a query; tenths are averaged over the hits with positions."""
    placed = [hit.sides for hit in hits if hit.sides is not None]
    values = {DOCUMENT: round(float(np.mean([hit.document_share for hit in hits])), 6)}
    for side, shares in zip(SIDES, np.mean(placed, axis=0) if placed else (), strict=bool(placed)):
        values |= {f"{side} {tenth}": round(float(share), 6) for tenth, share in enumerate(shares, 1)}
    facts = {"hits": float(len(hits)), "placed": float(len(placed))}
    return Case(id=f"{query_id}, {group}", values=values, facts=facts, labels={"hits": group}, group=query_id)


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Of the index.")
@click.option("--split", default="test", help="Whose queries are searched with.")
@click.option("-k", "--top", "k", default=10, type=click.IntRange(1), help="Hits of a query.")
@click.option("--exact", is_flag=True, help="Exact search, instead of ANN lists.")
@measurement(seed="Of --quick.", quick="A small seeded part of DATASET", encodes=True)
def main(call: Measurement, name: str, encoder: str, split: str, k: int, exact: bool) -> None:
    """Show which part of queries and targets carries the hits on DATASET, a task by name or a folder.

    \b
    Example:
        python -m benchmarks run positions proposals --encoder all-MiniLM-L6-v2
    """
    from benchmarks.prepare import prepared_index

    dataset = call.dataset(name, split)
    qrels = read_qrels(dataset, split)
    queries = read_queries(dataset, qrels)
    with prepared_index(dataset, encoder, call.work, log=log) as ready:
        system = Evidence(ready.index, ready.encoder, exact=exact)
        segmenter = segmenter_of(ready.index.snapshot.language or "none")
        started = time.perf_counter()
        cases = position_cases(lambda query: system.hits(query, k), queries, qrels, segmenter)
        found = Run(
            task="positions",
            dataset=f"{dataset.name}@{checksum(dataset)}",
            system=system.name,
            encoder=system.encoder,
            settings=system.settings,
            split=split,
            seconds=round(time.perf_counter() - started, 1),
            details=asdict(PositionDetails(k)),
            origin=call.origin,
            cases=cases,
        )
    call.publish([found], position_table)
