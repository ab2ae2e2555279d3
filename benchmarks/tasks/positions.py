"""Position bias: in which tenth of queries and of targets the contributions lie that make the scores of hits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, Qrels, checksum, open_dataset, read_qrels, read_queries
from benchmarks.markdown import markdown, origins
from benchmarks.options import data_option, log, out_option, plot_option, work_option
from benchmarks.plots import QUIET_COLOUR, Curve, draw_curves, new_figure, save_plot
from benchmarks.program import origin_of, task
from benchmarks.quick import quick_part
from benchmarks.record_file import RESULTS, write_record
from benchmarks.sections.parts import term_places
from benchmarks.significance import bootstrap_interval
from benchmarks.systems import Evidence, Settings
from engine.document import Document
from engine.encoders.backbone.weights import BUNDLED_NAME
from engine.result import Hit
from engine.words.segmenter import WordSegmenter, segmenter_of
from engine.words.titles import title_span
from indexer.training.origin import Origin

N_TENTHS = 10


@dataclass(frozen=True)
class PositionRecord:
    """Where in queries and in targets the contributions lie that make the scores.

    Groups are `all`, the k best hits of each query, and `relevant`, those of them
    that are judged relevant; sides are `query` and `target`. A list has a value
    for each tenth of the text, from its beginning.
    """

    kind: ClassVar[str] = "positions"

    task: str
    dataset: str  # name@checksum
    system: str
    encoder: str  # name@fingerprint
    settings: Settings
    split: str
    k: int  # hits of a query
    n_queries: dict[str, int]  # by group: with a hit
    n_hits: dict[str, int]  # by group
    n_placed: dict[str, int]  # by group: hits that have parts
    document_share: dict[str, float]  # by group: mean share of a score that whole documents gave; it has no place
    mass: dict[str, dict[str, list[float]]]  # by group and side: mean share of parts, summing to 1, over placed hits
    low: dict[str, dict[str, list[float]]]  # ends of 95 % bootstrap intervals over queries
    high: dict[str, dict[str, list[float]]]
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"positions-{self.task}-{self.system}-{self.encoder.partition('@')[0]}-{self.split}"


_GROUPS = {"all": "hits", "relevant": "relevant hits"}
_POSITION_NOTE = (
    "Share of the contributions of passages and words that lies in each tenth of the text: a hit counts 1, then a "
    "query counts 1; 0.100 everywhere is no bias. Intervals of 95 % by bootstrap over queries are in the records. "
    "Whole documents: the share of a score that the document vectors gave, over all hits; one that they gave entirely "
    "has no place in the text."
)


def position_table(records: Sequence[PositionRecord]) -> str:
    """A row for each task, encoder, group of hits and side; "" without records."""
    if not records:
        return ""
    head = ["Task (queries)", "Encoder", "Hits", "Side", *map(str, range(1, N_TENTHS + 1)), "Whole documents"]
    rows = [
        [
            f"{record.task}{_split(record.split)} ({record.n_queries[group]})",
            record.encoder.partition("@")[0],
            f"{record.n_hits[group]:,} {_GROUPS[group]} of the first {record.k}{_unplaced(record, group)}",
            side,
            *(f"{share:.3f}" for share in shares),
            f"{record.document_share[group]:.3f}",
        ]
        for record in records
        for group, by_side in record.mass.items()
        for side, shares in by_side.items()
    ]
    return "\n".join([*markdown(head, rows), "", _POSITION_NOTE, "", *origins(records)])


def plot_positions(record: PositionRecord, folder: Path) -> list[tuple[Path, Path]]:
    """Draw the shares of the tenths of queries, and of targets, a plot each, as PNG and SVG."""
    return [_plot_side(record, side, folder) for side in ("query", "target")]


def _plot_side(record: PositionRecord, side: str, folder: Path) -> tuple[Path, Path]:
    title = f"{record.task}{_split(record.split)}, {record.encoder.partition('@')[0]}: what gave the scores"
    figure, axes = new_figure(title, f"tenth of the {side}, from its beginning", "share of contributions")
    tenths = list(range(1, N_TENTHS + 1))
    axes.axhline(1 / N_TENTHS, color=QUIET_COLOUR, linestyle=":", linewidth=1, label="no bias")
    curves = [
        Curve(
            f"{_GROUPS[group]} of the first {record.k} ({record.n_hits[group]:,})",
            tenths,
            by_side[side],
            list(zip(record.low[group][side], record.high[group][side], strict=True)),
        )
        for group, by_side in record.mass.items()
    ]
    draw_curves(axes, curves)
    axes.set_xticks(tenths)
    axes.set_ylim(bottom=0)
    return save_plot(figure, folder / f"{record.name}-{side}")


def _unplaced(record: PositionRecord, group: str) -> str:
    without = record.n_hits[group] - record.n_placed[group]
    return f", {without:,} without a place" if without else ""


def _split(split: str) -> str:
    return "" if split == "test" else f", {split}"


SIDES = ("query", "target")
GROUPS = ("all", "relevant")


@dataclass(frozen=True)
class HitMass:
    """Where the contributions to one score lie."""

    sides: NDArray[np.float64] | None  # (2, 10) by side and tenth, each side sums to 1; None where no part gave any
    document_share: float  # of the score, in [0, 1]; it has no place


def tenths(spans: NDArray[np.int64], contributions: NDArray[np.float64], n_chars: int) -> NDArray[np.float64]:
    """Spread contributions evenly over their spans, and sum them by tenth of the text.

    Args:
        spans: (n, 2) stretches of one text, each not empty.
        contributions: (n,) of each.
        n_chars: length of the text, at least 1.

    Returns:
        (10,), from the beginning; sums to the sum of the contributions.
    """
    edges = np.linspace(0, n_chars, N_TENTHS + 1)
    inside = np.minimum(spans[:, 1:], edges[1:]) - np.maximum(spans[:, :1], edges[:-1])  # (n, 10)
    mass: NDArray[np.float64] = contributions / (spans[:, 1] - spans[:, 0]) @ np.maximum(inside, 0)
    return mass


def hit_mass(hit: Hit, query: Document, segmenter: WordSegmenter) -> HitMass | None:
    """Where the contributions to a hit's score lie; None where nothing contributed to it."""
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
        places, words = term_places(found, breakdown.terms, segmenter, title_span(document))
        ends = np.array([[span.start, span.stop] for span in spans], np.int64).reshape(-1, 2)
        sides.append(tenths(np.concatenate([ends, places]), np.concatenate([passages, words]), len(document.text)))
    total = sides[0].sum()
    if not total:
        return HitMass(None, 1.0) if whole else None
    return HitMass(np.stack(sides) / total, whole / (whole + total))


def collect_masses(
    hits: Callable[[Document], Sequence[Hit]],
    queries: Mapping[str, Document],
    qrels: Qrels,
    segmenter: WordSegmenter,
) -> dict[str, list[list[HitMass]]]:
    """Ask every query, and keep where the scores of its hits come from.

    Returns:
        For each of `GROUPS` the hits of each query that has some there.
    """
    groups: dict[str, list[list[HitMass]]] = defaultdict(list)
    for query_id, query in queries.items():
        found = [(hit.doc_id, mass) for hit in hits(query) if (mass := hit_mass(hit, query, segmenter))]
        relevant = [mass for doc_id, mass in found if qrels[query_id].get(doc_id, 0) > 0]
        for group, masses in zip(GROUPS, ([mass for _, mass in found], relevant), strict=True):
            if masses:
                groups[group].append(masses)
    return groups


def position_record(
    groups: Mapping[str, Sequence[Sequence[HitMass]]],
    system: Evidence,
    dataset: Dataset,
    *,
    split: str,
    k: int,
    origin: Origin,
) -> PositionRecord:
    """Average over the hits of a query, then over queries; a group without a placed hit is left out.

    Shares of whole documents are over all hits, those of tenths over hits that have parts.
    """
    mass: dict[str, dict[str, list[float]]] = {}
    low: dict[str, dict[str, list[float]]] = {}
    high: dict[str, dict[str, list[float]]] = {}
    placed = {group: [_sides(hits) for hits in by_query] for group, by_query in groups.items()}
    groups = {group: by_query for group, by_query in groups.items() if any(placed[group])}
    for group in groups:
        means = np.stack([np.mean(sides, axis=0) for sides in placed[group] if sides])  # (Q, 2, 10)
        mass[group] = _by_side(means.mean(axis=0))
        ends = np.apply_along_axis(bootstrap_interval, 0, means, seed=origin.seed)  # (2, 2, 10)
        low[group], high[group] = _by_side(ends[0]), _by_side(ends[1])
    return PositionRecord(
        task=dataset.name,
        dataset=f"{dataset.name}@{checksum(dataset)}",
        system=system.name,
        encoder=system.encoder,
        settings=system.settings,
        split=split,
        k=k,
        n_queries={group: len(by_query) for group, by_query in groups.items()},
        n_hits={group: sum(map(len, by_query)) for group, by_query in groups.items()},
        n_placed={group: sum(map(len, placed[group])) for group in groups},
        document_share={group: round(_mean_document_share(by_query), 4) for group, by_query in groups.items()},
        mass=mass,
        low=low,
        high=high,
        origin=origin,
    )


def _sides(hits: Sequence[HitMass]) -> list[NDArray[np.float64]]:
    return [hit.sides for hit in hits if hit.sides is not None]


def _by_side(values: NDArray[np.float64]) -> dict[str, list[float]]:
    return {side: [round(float(share), 4) for share in row] for side, row in zip(SIDES, values, strict=True)}


def _mean_document_share(by_query: Sequence[Sequence[HitMass]]) -> float:
    return float(np.mean([np.mean([hit.document_share for hit in hits]) for hits in by_query]))


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Of the index.")
@click.option("--split", default="test", show_default=True, help="Whose queries are asked.")
@click.option("-k", "--top", "k", default=10, show_default=True, type=click.IntRange(1), help="Hits of a query.")
@click.option("--exact", is_flag=True, help="Exact search, instead of ANN lists.")
@click.option("--quick", is_flag=True, help="A small seeded part of DATASET; a record only where --out is given.")
@click.option("--seed", default=0, show_default=True, help="Of intervals, and of --quick.")
@data_option
@work_option
@out_option
@plot_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    split: str,
    k: int,
    exact: bool,
    quick: bool,
    seed: int,
    data: Path,
    work: Path,
    out: Path | None,
    plot_out: Path | None,
) -> None:
    """Show which part of queries and targets carries the hits on DATASET, a task by name or a folder.

    \b
    Example:
        python -m benchmarks run positions proposals --encoder all-MiniLM-L6-v2 --plot-out plots/
    """
    from benchmarks.prepare import prepared_index

    dataset = open_dataset(name, data)
    dataset = quick_part(dataset, split, work / "quick", seed=seed) if quick else dataset
    qrels = read_qrels(dataset, split)
    queries = read_queries(dataset, qrels)
    with prepared_index(dataset, encoder, work, log=log) as ready:
        system = Evidence(ready.index, ready.encoder, exact=exact)
        segmenter = segmenter_of(ready.index.snapshot.language or "none")
        groups = collect_masses(lambda query: system.hits(query, k), queries, qrels, segmenter)
    origin = origin_of(context, seed)
    record = position_record(groups, system, dataset, split=split, k=k, origin=origin)
    if folder := out or (None if quick else RESULTS):
        write_record(record, folder)
    if plot_out:
        plot_positions(record, plot_out)
    click.echo(position_table([record]))
