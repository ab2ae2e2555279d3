"""Draws the tables of README, results and docs from committed records, and from nothing else.

A table is between `<!-- results:NAME -->` and `<!-- /results -->`; NAME is one of `TABLES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.figures import draw_figures
from benchmarks.headlines import findings_table, headline_table
from benchmarks.markdown import case_tables
from benchmarks.orderings import orderings_table
from benchmarks.pairs.tables import pairs_table
from benchmarks.peers.table import peers_table
from benchmarks.program import program
from benchmarks.quality_tables import length_table, overview_table, parts_table, retrieval_table
from benchmarks.quick import SUFFIX, WHOLE
from benchmarks.record_file import RESULTS
from benchmarks.records import Record, read_records
from benchmarks.runs import Run
from benchmarks.speed.encode.tables import limit_table, throughput_table
from benchmarks.speed.gpu_search import gpu_search_table
from benchmarks.speed.recall import recall_table
from benchmarks.tasks.architectures import architectures_table
from benchmarks.tasks.facets import facets_table
from benchmarks.tasks.faithfulness import faithfulness_table
from benchmarks.tasks.on_demand import demand_table
from benchmarks.tasks.planted import planted_table
from benchmarks.tasks.probe import probe_table
from benchmarks.tasks.summaries import summary_table
from engine.errors import EngineError

_FOLDER = Path(__file__).resolve().parent
_ROOT = _FOLDER.parent
PAGES = (
    *(_ROOT / "README.md", _FOLDER / "RESULTS.md", _ROOT / "docs/explanation/on-demand.md"),
    *sorted((_FOLDER / "results").glob("*.md")),
)
_BLOCK = re.compile(r"(<!-- results:(\w+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)


class ReportError(EngineError):
    """Raised when a file holds no table to draw, or an unknown one."""


@dataclass(frozen=True)
class Table:
    """A table of a page."""

    kinds: tuple[str, ...]  # of the records and runs that it shows
    draw: Callable[[Sequence[Any]], str]  # of records of these kinds
    is_of_parts: bool = False  # shows retrieval with parts of documents, and not with whole ones

    def shown(self, records: Sequence[Record]) -> list[Record]:
        """Its records, without those that `is_partial` excludes from all pages."""
        return [
            record
            for record in records
            if record.kind in self.kinds
            and not is_partial(record)
            and self.is_of_parts == (isinstance(record, Run) and record.details.get("part", WHOLE) != WHOLE)
        ]

    def text(self, records: Sequence[Record]) -> str:
        """The table, or a line where there is no record to show."""
        shown = self.shown(records)
        return (self.draw(shown) if shown else "") or "No records yet."


def is_partial(record: Record) -> bool:
    """Whether a record is of a quick run, of the first queries, or (retrieval) of another split than test."""
    if record.kind == "retrieval" and getattr(record, "split", "test") != "test":
        return True
    if isinstance(record, Run):
        return record.corpus.endswith(SUFFIX)
    is_quick = getattr(record, "is_quick", False) or getattr(record, "task", "").endswith(SUFFIX)
    return bool(is_quick or getattr(record, "limit", 0))


TABLES: Mapping[str, Table] = {
    "headline": Table(("retrieval",), headline_table),
    "findings": Table(
        ("retrieval", "demand", "stability", "peers", "throughput"),
        findings_table,
    ),
    "overview": Table(("retrieval",), overview_table),
    "retrieval": Table(("retrieval",), retrieval_table),
    "parts": Table(("retrieval",), parts_table, is_of_parts=True),
    "recall": Table(("recall",), recall_table),
    "gpu_search": Table(("gpu_search",), gpu_search_table),
    "stability": Table(("stability",), case_tables),
    "boilerplate": Table(("boilerplate",), case_tables),
    "load": Table(("load",), case_tables),
    "demand": Table(("demand",), demand_table),
    "samples": Table(("samples",), case_tables),
    "architectures": Table(("architectures",), architectures_table),
    "lengths": Table(("retrieval",), length_table),
    "positions": Table(("positions",), case_tables),
    "pairs": Table(("pairs",), pairs_table),
    "orderings": Table(("pairs", "probe"), orderings_table),
    "probes": Table(("probe",), probe_table),
    "summaries": Table(("summaries",), summary_table),
    "facets": Table(("facets",), facets_table),
    "faithfulness": Table(("faithfulness",), faithfulness_table),
    "planted": Table(("planted",), planted_table),
    "contained": Table(("contained",), case_tables),
    "duplicates": Table(("duplicates",), case_tables),
    "peers": Table(("peers",), peers_table),
    "throughput": Table(("throughput",), throughput_table),
    "timed": Table(("timed",), case_tables),
    "limit": Table(("throughput",), limit_table),
    "scale": Table(("scale",), case_tables),
    "additions": Table(("addition",), case_tables),
}


def not_shown(pages: Iterable[str], records: Sequence[Record]) -> list[str]:
    """The first table of each kind of record that no table of the pages shows."""
    shown = {kind for page in pages for match in _BLOCK.finditer(page) for kind in TABLES[match[2]].kinds}
    missing: dict[str, str] = {}
    for name, table in TABLES.items():
        for record in table.shown(records):
            if record.kind not in shown:
                missing.setdefault(record.kind, name)
    return list(dict.fromkeys(missing.values()))


def drawn(text: str, records: Sequence[Record]) -> str:
    """The text with each of its tables redrawn.

    Raises:
        ReportError: the text holds no table, or an unknown one.
    """

    def block(match: re.Match[str]) -> str:
        if match[2] not in TABLES:
            raise ReportError(f"there is no table {match[2]!r}; name one of {', '.join(TABLES)}")
        return f"{match[1]}{TABLES[match[2]].text(records)}\n{match[4]}"

    text, n_tables = _BLOCK.subn(block, text)
    if not n_tables:
        raise ReportError(
            "there is no table to draw; add <!-- results:retrieval --> and <!-- /results -->, a line each"
        )
    return text


@program
@click.option(
    "--page",
    "pages",
    default=PAGES,
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Page with tables; may be repeated.  [default: README.md, RESULTS.md, results/*.md]",
)
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Folder of the records.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a table differs from its records, or is missing.")
@click.option("--plots", type=click.Path(path_type=Path), help="Also draw every plot into this folder, PNG and SVG.")
def main(pages: tuple[Path, ...], results: Path, check: bool, plots: Path | None) -> None:
    """Draw the tables of the pages from records and runs.

    --check also fails for a kind of record that no table shows. `list NAME` prints what changed since a run.

    \b
    Example:
        python -m benchmarks report --check
    """
    records = read_records(results)
    if plots:
        for path in draw_figures(results, plots):
            click.echo(path.name)
    before = {page: page.read_text("utf-8") for page in pages}
    after = {page: _drawn_page(page, text, records) for page, text in before.items()}
    if check:
        _check(before, after, records)
        return
    for page, text in after.items():
        page.write_text(text, "utf-8")


def _drawn_page(page: Path, text: str, records: Sequence[Record]) -> str:
    try:
        return drawn(text, records)
    except ReportError as error:
        raise click.ClickException(f"{page.name}: {error}") from error


def _check(before: Mapping[Path, str], after: Mapping[Path, str], records: Sequence[Record]) -> None:
    stale = [page.name for page in after if after[page] != before[page]]
    if stale:
        raise click.ClickException(f"the tables of {' and '.join(stale)} are stale; run python -m benchmarks report")
    if missing := not_shown(after.values(), records):
        blocks = ", ".join(f"<!-- results:{name} -->" for name in missing)
        raise click.ClickException(
            f"there are records that no table of {' or '.join(page.name for page in after)} shows; add {blocks}, "
            "each with <!-- /results --> below it"
        )
