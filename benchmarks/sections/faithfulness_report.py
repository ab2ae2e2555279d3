"""What becomes of score and rank as parts go, by side, order and method: table and plot; drawn from records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.plots import Curve, draw_curves, new_figure, save_plot
from benchmarks.sections.parts import OrderKind
from benchmarks.sections.records import Arm, FaithfulnessRecord
from benchmarks.significance import bootstrap_interval, randomization_p

# Name in a record, name in the table, and whether high or low is good.
_MEASURES = {
    "deletion_area": "deletion, area (low)",
    "insertion_area": "insertion, area (high)",
    "comprehensiveness": "comprehensiveness (high)",
    "sufficiency": "sufficiency (low)",
    "deletion_rank_area": "deletion, area of 1/rank (low)",
    "insertion_rank_area": "insertion, area of 1/rank (high)",
}


_NOTE = (
    "Areas under score and reciprocal rank over the share of tokens that is removed (deletion) or alone there "
    "(insertion), parts in the order of the breakdown, of the largest plain cosine, or at random. Scores are relative "
    "to the whole document's. Comprehensiveness and sufficiency: mean loss at 5, 10, 20 and 50 % of tokens. "
    "Differences: the area between two curves, with a bootstrap interval; p: two-sided paired randomisation test over "
    "queries, the hits of one averaged, adjusted after Holm over each column. Stored: rescored from stored vectors, "
    "the document vector as it was; re-encoded: the text that is left, encoded anew."
)


_RIVALS = (OrderKind.RANDOM, OrderKind.COSINE)


def faithfulness_table(records: Sequence[FaithfulnessRecord]) -> str:
    """A row for each corpus, method, side and measure."""
    head = ["Corpus", "Encoder", "Removed from (queries)", "Measure", *OrderKind]
    tests = [f"{kind} {cell}" for kind in ("less random", "less cosine") for cell in ("[95 %]", "p")]
    rows = [row for record in records for row in _rows(record)]
    return "\n".join([*markdown([*head, *tests], rows), "", _NOTE, "", *origins(records)])


def _rows(record: FaithfulnessRecord) -> list[list[str]]:
    cases = [(own, measure) for own in _by_place(record).values() for measure in _MEASURES]
    columns = [p_cells([_p(own, rival, measure, record.origin.seed) for own, measure in cases]) for rival in _RIVALS]
    rows = []
    for (own, measure), *p_values in zip(cases, *columns, strict=True):
        arm = own[OrderKind.BREAKDOWN]
        cells = [f"{np.mean(own[kind].per_query[measure]):.3f}" for kind in OrderKind]
        differences = [_difference(own, rival, measure, record.origin.seed) for rival in _RIVALS]
        tested = [cell for pair in zip(differences, p_values, strict=True) for cell in pair]
        place = f"{arm.side}, {arm.method} ({len(arm.query_ids)})"
        corpus = record.task + (", quick" if record.is_quick else "")
        rows.append([corpus, record.encoder.partition("@")[0], place, _MEASURES[measure], *cells, *tested])
    return rows


def _by_place(record: FaithfulnessRecord) -> dict[tuple[str, str], dict[str, Arm]]:
    places: dict[tuple[str, str], dict[str, Arm]] = {}
    for arm in record.arms:
        places.setdefault((arm.method, arm.side), {})[arm.order] = arm
    return places


def _differences(own: Mapping[str, Arm], rival: OrderKind, measure: str) -> list[float]:
    pairs = zip(own[OrderKind.BREAKDOWN].per_query[measure], own[rival].per_query[measure], strict=True)
    return [a - b for a, b in pairs]


def _difference(own: Mapping[str, Arm], rival: OrderKind, measure: str, seed: int) -> str:
    differences = _differences(own, rival, measure)
    low, high = bootstrap_interval(differences, seed=seed)
    return f"{np.mean(differences):+.3f} [{low:+.3f}, {high:+.3f}]"


def _p(own: Mapping[str, Arm], rival: OrderKind, measure: str, seed: int) -> float:
    return randomization_p(own[OrderKind.BREAKDOWN].per_query[measure], own[rival].per_query[measure], seed=seed)


def draw_faithfulness(record: FaithfulnessRecord, folder: Path) -> list[Path]:
    """Draw deletion and insertion, a plot for each method and side; returns all PNG and SVG files.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    paths: list[Path] = []
    for (method, side), own in _by_place(record).items():
        for change, said in (("deletion", "removed"), ("insertion", "put in")):
            title = f"{record.task}: {said} from the {side}, {method}"
            if change == "insertion":
                title = f"{record.task}: {said} to an empty {side}, {method}"
            figure, axes = new_figure(title, f"share of tokens {said}", "score, relative to the whole")
            draw_curves(axes, [Curve(kind, record.shares[method], own[kind].curves[change]) for kind in OrderKind])
            axes.set_ylim(bottom=0)
            paths += save_plot(figure, folder / f"{record.name}-{method}-{side}-{change}")
    return paths
