"""Draws the tables of the README from committed records, and from nothing else.

A table stands between `<!-- results:NAME -->` and `<!-- /results -->`; NAME is one of `TABLES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from benchmarks.durability.promises import promise_lines
from benchmarks.markdown import markdown, origins
from benchmarks.quality_tables import leave_one_out_table, retrieval_table
from benchmarks.records import RESULTS, RecallRecord, Record, RetrievalRecord, TrainingRecord, read_records
from benchmarks.training import training_table
from engine.errors import EngineError

README = Path(__file__).resolve().parents[1] / "README.md"
_BLOCK = re.compile(r"(<!-- results:(\w+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)


class ReportError(EngineError):
    """Raised when a file holds no table to draw, or one that is not known."""


def recall_table(records: Sequence[RecallRecord]) -> str:
    """What the ANN lists lose, and what they save."""
    times = ["ANN p50 / p95 / p99, ms", "Exact p50 / p95 / p99, ms"]
    head = ["Index", "Factory", "nprobe", "Documents", "Chunks", "Recall", "Lowest", *times]
    rows = [
        [
            record.index,
            record.factory or "none",
            str(record.nprobe or ""),
            f"{record.n_documents:,}",
            f"{record.n_chunks:,}",
            f"{record.recall:.3f} at {record.k}",
            f"{record.lowest_recall:.3f}",
            *(f"{cost.p50_ms:.1f} / {cost.p95_ms:.1f} / {cost.p99_ms:.1f}" for cost in (record.ann, record.exact)),
        ]
        for record in records
    ]
    return "\n".join([*markdown(head, rows), "", *origins(records)])


def _readme_recall(records: Sequence[Record]) -> str:
    shown = [record for record in records if isinstance(record, RecallRecord)]
    return recall_table(shown) if shown else "No records yet."


def _readme_training(records: Sequence[Record]) -> str:
    shown = [record for record in records if isinstance(record, TrainingRecord)]
    if not shown:
        return "No records yet."
    head = ["Run", "What was tried", "Steps x queries", *shown[0].corpora, "mean"]
    note = "nDCG@10 on valid queries among a part of each corpus: before training, at the best validation, at the last."
    return "\n".join([*markdown(head, training_table(shown)), "", note, "", *origins(shown)])


def _readme_promises(records: Sequence[Record]) -> str:
    return "\n".join(promise_lines(records)) or "No records yet."


def _readme_quality(draw: Callable[[Sequence[RetrievalRecord]], str], records: Sequence[Record]) -> str:
    shown = [record for record in records if isinstance(record, RetrievalRecord) and record.split == "test"]
    return draw(shown) or "No records yet."


TABLES: Mapping[str, Callable[[Sequence[Record]], str]] = {
    "retrieval": partial(_readme_quality, retrieval_table),
    "leave_one_out": partial(_readme_quality, leave_one_out_table),
    "recall": _readme_recall,
    "promises": _readme_promises,
    "training": _readme_training,
}


def drawn(text: str, records: Sequence[Record]) -> str:
    """The text with each of its tables drawn anew.

    Raises:
        ReportError: it holds no table, or one that is not known.
    """

    def block(match: re.Match[str]) -> str:
        if match[2] not in TABLES:
            raise ReportError(f"there is no table {match[2]!r}; name one of {', '.join(TABLES)}")
        return f"{match[1]}{TABLES[match[2]](records)}\n{match[4]}"

    text, n_tables = _BLOCK.subn(block, text)
    if not n_tables:
        raise ReportError(
            "there is no table to draw; add <!-- results:retrieval --> and <!-- /results -->, a line each"
        )
    return text


@click.command()
@click.option("--readme", default=README, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Folder of the records.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a table is stale.")
def main(readme: Path, results: Path, check: bool) -> None:
    """Draw the README's tables from the records.

    \b
    Example:
        python -m benchmarks.report --check
    """
    before = readme.read_text("utf-8")
    try:
        after = drawn(before, read_records(results))
    except EngineError as error:
        raise click.ClickException(f"{readme.name}: {error}") from error
    if check and after != before:
        raise click.ClickException(f"the tables of {readme.name} are stale; run python -m benchmarks.report")
    if not check:
        readme.write_text(after, "utf-8")


if __name__ == "__main__":
    main()
