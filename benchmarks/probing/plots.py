"""Accuracy over the number of labels, a plot a task, drawn from records of probes alone."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.plots import Curve, draw_curves, new_figure, save_plot
from benchmarks.probing.record import ProbeRecord
from benchmarks.record_file import name_of


def plot_few_shot(records: Sequence[ProbeRecord], folder: Path) -> list[Path]:
    """Draw mean accuracy of each system over labels a class, in a band of a standard deviation over draws.

    Records without draws are left out. The last point is that of all labels, at their number a class.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    by_task: dict[tuple[str, str, str], list[ProbeRecord]] = defaultdict(list)
    for record in records:
        if record.few_shot and not record.is_quick:
            by_task[record.task, record.dataset, str(record.settings["max_words"])].append(record)
    written: list[Path] = []
    for (_, dataset, words), shown in sorted(by_task.items()):
        task = shown[0].task
        cut = "" if words == "0" else f", first {words} words"
        title = f"{task}{cut}: {shown[0].n_classes} classes, {shown[0].n_test:,} test documents"
        figure, axes = new_figure(title, "labels a class (the last: all)", "accuracy")
        draw_curves(axes, [_curve(record) for record in shown])
        axes.set_xscale("log")
        places = sorted({x for record in shown for x in _curve(record).x})
        axes.set_xticks(places, [f"{place:,.0f}" for place in places])
        axes.minorticks_off()
        checksum = dataset.partition("@")[2]
        written += save_plot(
            figure, folder / name_of("few-shot", task, checksum, "" if words == "0" else f"first{words}")
        )
    return written


def _curve(record: ProbeRecord) -> Curve:
    label = f"{record.system}, {record.encoder.partition('@')[0]}" if record.encoder else record.system
    drawn = {int(n): values["accuracy"] for n, values in record.few_shot.items()}
    whole = record.metrics["accuracy"]
    means = [statistics.mean(values) for values in drawn.values()]
    bands = [
        (mean - statistics.stdev(values), mean + statistics.stdev(values))
        for mean, values in zip(means, drawn.values(), strict=True)
    ]
    return Curve(label, [*drawn, record.n_train / record.n_classes], [*means, whole], [*bands, (whole, whole)])
