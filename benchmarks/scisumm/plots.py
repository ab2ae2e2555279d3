"""Precision at each cutoff for the candidates drawn of CL-SciSumm, drawn from records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.plots import Curve, draw_curves, new_figure, save_plot
from benchmarks.scisumm.record import SummaryRecord
from benchmarks.significance import bootstrap_interval

TASK = "citing-drawn"


def plot_precision(records: Sequence[SummaryRecord], folder: Path) -> list[Path]:
    """Draw P@1 to P@5 of each system, with bootstrap intervals over papers, for each split and dataset (TDE's fig. 2).

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    by_split: dict[tuple[str, str], list[SummaryRecord]] = defaultdict(list)
    for record in records:
        if record.task == TASK and not record.is_quick:
            by_split[record.split, record.dataset].append(record)
    written: list[Path] = []
    for (split, dataset), shown in sorted(by_split.items()):
        title = f"Citing papers by summary ({split}): 5 among 20, {shown[0].n_draws} draws"
        figure, axes = new_figure(title, "k", "P@k")
        draw_curves(axes, [_curve(record) for record in shown])
        axes.set_xticks(range(1, 6))
        written += save_plot(figure, folder / f"precision-{TASK}-{split}-{dataset.partition('@')[2]}")
    return written


def _curve(record: SummaryRecord) -> Curve:
    names = [f"P@{k}" for k in range(1, 6)]
    label = f"{record.system}, {record.encoder.partition('@')[0]}" if record.encoder else record.system
    return Curve(
        label,
        list(range(1, 6)),
        [record.metrics[name] for name in names],
        [
            bootstrap_interval(record.per_query[name], groups=record.topic_ids, seed=record.origin.seed)
            for name in names
        ],
    )
