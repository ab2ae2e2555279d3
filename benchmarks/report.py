"""Draws the tables of the README from committed records, and from nothing else.

A table stands between `<!-- results:NAME -->` and `<!-- /results -->`; NAME is one of `TABLES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from benchmarks.datasets import TASKS
from benchmarks.metrics import METRICS, PRIMARY
from benchmarks.promises import promise_lines
from benchmarks.records import RESULTS, RecallRecord, Record, RetrievalRecord, read_records
from benchmarks.significance import bootstrap_interval, randomization_p
from engine.errors import EngineError
from engine.origin import Origin

README = Path(__file__).resolve().parents[1] / "README.md"
_BLOCK = re.compile(r"(<!-- results:(\w+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)
_ORDER = ("evidence", "document", "bm25")


class ReportError(EngineError):
    """Raised when a file holds no table to draw, or one that is not known."""


def retrieval_table(records: Sequence[RetrievalRecord]) -> str:
    """Quality by task and system, with p-values where both records are there."""
    head = ["Task (queries)", "System", f"{PRIMARY} [95 %]", *METRICS[1:], "p, document", "p, BM25"]
    rows = [_retrieval_row(record, records) for record in sorted(records, key=_place)]
    note = (
        f"{PRIMARY} has the gain 2^relevance - 1, and a bootstrap interval over queries. p: two-sided paired "
        f"randomisation test of {PRIMARY} against the document vector of the same encoder, and against BM25."
    )
    return "\n".join([*_markdown(head, rows), "", note, "", *_origins(records)])


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
    return "\n".join([*_markdown(head, rows), "", *_origins(records)])


def _readme_retrieval(records: Sequence[Record]) -> str:
    shown = [record for record in records if isinstance(record, RetrievalRecord) and record.split == "test"]
    return retrieval_table(shown) if shown else "No records yet."


def _readme_recall(records: Sequence[Record]) -> str:
    shown = [record for record in records if isinstance(record, RecallRecord)]
    return recall_table(shown) if shown else "No records yet."


def _readme_promises(records: Sequence[Record]) -> str:
    return "\n".join(promise_lines(records)) or "No records yet."


TABLES: Mapping[str, Callable[[Sequence[Record]], str]] = {
    "retrieval": _readme_retrieval,
    "recall": _readme_recall,
    "promises": _readme_promises,
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


def _place(record: RetrievalRecord) -> tuple[int, str, str, str, int]:
    tasks, systems = [*TASKS, record.task], [*_ORDER, record.system]
    return tasks.index(record.task), record.task, record.split, record.encoder or "~", systems.index(record.system)


def _retrieval_row(record: RetrievalRecord, records: Sequence[RetrievalRecord]) -> list[str]:
    low, high = bootstrap_interval(record.per_query[PRIMARY], seed=record.origin.seed)
    split = "" if record.split == "test" else f", {record.split}"
    return [
        f"{record.task}{split} ({record.n_queries})",
        f"{record.system}, {record.encoder.partition('@')[0]}" if record.encoder else record.system,
        f"{record.metrics[PRIMARY]:.3f} [{low:.3f}, {high:.3f}]",
        *(f"{record.metrics[name]:.3f}" for name in METRICS[1:]),
        _p_against(
            record, [other for other in records if (other.system, other.encoder) == ("document", record.encoder)]
        ),
        _p_against(record, [other for other in records if other.system == "bm25"]),
    ]


def _p_against(record: RetrievalRecord, others: Sequence[RetrievalRecord]) -> str:
    asked = (record.dataset, record.split, record.query_ids)
    for other in others:
        if other is not record and (other.dataset, other.split, other.query_ids) == asked:
            p = randomization_p(record.per_query[PRIMARY], other.per_query[PRIMARY], seed=record.origin.seed)
            return f"{p:.3f}" if p >= 0.001 else "< 0.001"
    return ""


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def _origins(records: Sequence[Record]) -> list[str]:
    return [f"Measured: {'; '.join(dict.fromkeys(_origin(record.origin) for record in records))}."] if records else []


def _origin(origin: Origin) -> str:
    machine = origin.machine
    commit = f"commit {origin.commit[:10] or 'unknown'}" + (" with changes" if origin.is_dirty else "")
    gpu = f", {machine.gpu}" if machine.gpu else ""
    return f"{commit} on {machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB{gpu}"


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
