"""Draws every plot, as PNG and SVG, from committed records, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from benchmarks.probing.plots import plot_few_shot
from benchmarks.probing.record import ProbeRecord
from benchmarks.program import program
from benchmarks.record_file import RESULTS
from benchmarks.records import RecallRecord, Record, RetrievalRecord, read_records
from benchmarks.retrieval_plots import plot_quality, plot_recall
from benchmarks.scisumm.plots import plot_precision
from benchmarks.scisumm.record import SummaryRecord

OUT = RESULTS / "plots"

RecordT = TypeVar("RecordT")

# Kinds of records that have plots of their own, each drawn by itself. What draws them is imported where there is such
# a record, as some bring torch along.
_EACH: Mapping[str, str] = {
    "ann": "benchmarks.vectors.pictures:save_pareto",
    "lengths": "benchmarks.slices.views:plot_lengths",
    "positions": "benchmarks.slices.views:plot_positions",
    "facets": "benchmarks.sections.facet_report:draw_facets",
    "faithfulness": "benchmarks.sections.faithfulness_report:draw_faithfulness",
    "planted": "benchmarks.sections.planted_report:draw_planted",
}


def draw_figures(results: Path, folder: Path) -> list[Path]:
    """Draw all records of a folder that have a plot, and return what was written.

    Raises:
        RecordError: a file is no record.
        MissingExtra: matplotlib is not installed.
    """
    found = read_records(results)
    written = [
        *plot_quality(_of(RetrievalRecord, found), folder),
        *plot_recall(_of(RecallRecord, found), folder),
        *plot_few_shot(_of(ProbeRecord, found), folder),
        *plot_precision(_of(SummaryRecord, found), folder),
    ]
    for record in sorted(found, key=lambda record: record.kind):
        if record.kind in _EACH and not getattr(record, "is_quick", False):
            written += _flat(_drawing(_EACH[record.kind])(record, folder))
    return written


def _of(kind: type[RecordT], records: Iterable[Record]) -> list[RecordT]:
    return [record for record in records if isinstance(record, kind)]


def _drawing(place: str) -> Any:  # noqa: ANN401 - a function of a record and a folder
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _flat(paths: Iterable[Path | Iterable[Path]]) -> list[Path]:
    return [path for one in paths for path in ([one] if isinstance(one, Path) else one)]


@program
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path, exists=True), help="Folder of the records.")
@click.option("--out", default=OUT, type=click.Path(path_type=Path), help="Folder for the plots.")
def main(results: Path, out: Path) -> None:
    """Draw every plot from the records, as PNG and SVG.

    \b
    Example:
        python -m benchmarks.figures --out plots/
    """
    written = draw_figures(results, out)
    for path in written:
        click.echo(path.name)


if __name__ == "__main__":
    main()
