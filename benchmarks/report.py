"""Draws tables and pictures of README, results and docs from committed runs, and from nothing else.

A table is between `<!-- results:NAME -->` and `<!-- /results -->`; NAME is one of `TABLES`. A picture of `PICTURES` is
drawn where a page names `pictures/NAME-light.svg`, together with `pictures/NAME-dark.svg`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.program import program
from benchmarks.quick import SUFFIX, WHOLE
from benchmarks.runs import RESULTS, Run, read_runs
from benchmarks.tables.encoders import architectures_table, probe_table
from benchmarks.tables.findings import findings_table, headline_table
from benchmarks.tables.orderings import orderings_table
from benchmarks.tables.pairs import pairs_table
from benchmarks.tables.peers import peers_table
from benchmarks.tables.pictures import PICTURES, THEMES, drawn_picture
from benchmarks.tables.pivot import case_tables
from benchmarks.tables.quality import length_table, overview_table, parts_table, retrieval_table, summary_table
from benchmarks.tables.sections import facets_table, faithfulness_table, planted_table
from engine.errors import EngineError

_FOLDER = Path(__file__).resolve().parent
_ROOT = _FOLDER.parent
PAGES = (
    *(_ROOT / "README.md", _FOLDER / "RESULTS.md", _ROOT / "docs/explanation/on-demand.md"),
    *sorted((_FOLDER / "results").glob("*.md")),
)
_BLOCK = re.compile(r"(<!-- results:(\w+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)
_PICTURE = re.compile(r'srcset="((?:\w+/)*pictures/)([\w-]+)-dark\.svg"')


class ReportError(EngineError):
    """Raised when a file holds no table to draw, or an unknown one."""


@dataclass(frozen=True)
class Table:
    """A table of a page: by default a row for each case, see `case_tables`."""

    tasks: tuple[str, ...]  # whose runs it shows
    draw: Callable[[Sequence[Run]], str] = case_tables
    is_of_parts: bool = False  # shows retrieval with parts of documents, and not with whole ones

    def shown(self, runs: Sequence[Run]) -> list[Run]:
        """Its runs, without those that `is_partial` excludes from all pages."""
        return [
            run
            for run in runs
            if run.task in self.tasks
            and not is_partial(run)
            and self.is_of_parts == (run.details.get("part", WHOLE) != WHOLE)
        ]

    def text(self, runs: Sequence[Run]) -> str:
        """The table, or a line where there is no run to show."""
        shown = self.shown(runs)
        return (self.draw(shown) if shown else "") or "No runs yet."


def is_partial(run: Run) -> bool:
    """Whether a run is of a quick part, or (retrieval) of another split than test."""
    return run.corpus.endswith(SUFFIX) or (run.task == "retrieval" and run.split != "test")


_OF_CASES = (
    *("search", "stability", "boilerplate", "load", "demand", "samples", "positions", "contained", "duplicates"),
    *("throughput", "timed", "scale", "board"),
)
TABLES: Mapping[str, Table] = {
    "headline": Table(("retrieval",), headline_table),
    "findings": Table(("retrieval", "demand", "stability", "peers", "throughput"), findings_table),
    "overview": Table(("retrieval",), overview_table),
    "retrieval": Table(("retrieval",), retrieval_table),
    "parts": Table(("retrieval",), parts_table, is_of_parts=True),
    "architectures": Table(("architectures",), architectures_table),
    "lengths": Table(("retrieval",), length_table),
    "pairs": Table(("pairs",), pairs_table),
    "orderings": Table(("pairs", "probe"), orderings_table),
    "probes": Table(("probe",), probe_table),
    "summaries": Table(("summaries",), summary_table),
    "facets": Table(("facets",), facets_table),
    "faithfulness": Table(("faithfulness",), faithfulness_table),
    "planted": Table(("planted",), planted_table),
    "peers": Table(("peers",), peers_table),
    "additions": Table(("addition",)),
    **{task: Table((task,)) for task in _OF_CASES},
}


def not_shown(pages: Iterable[str], runs: Sequence[Run]) -> list[str]:
    """The first table of each task whose runs no table of the pages shows."""
    shown = {task for page in pages for match in _BLOCK.finditer(page) for task in TABLES[match[2]].tasks}
    missing: dict[str, str] = {}
    for name, table in TABLES.items():
        for run in table.shown(runs):
            if run.task not in shown:
                missing.setdefault(run.task, name)
    return list(dict.fromkeys(missing.values()))


def drawn(text: str, runs: Sequence[Run]) -> str:
    """The text with each of its tables redrawn."""

    def block(match: re.Match[str]) -> str:
        if match[2] not in TABLES:
            raise ReportError(f"there is no table {match[2]!r}; name one of {', '.join(TABLES)}")
        return f"{match[1]}{TABLES[match[2]].text(runs)}\n{match[4]}"

    text, n_tables = _BLOCK.subn(block, text)
    if not n_tables:
        raise ReportError(
            "there is no table to draw; add <!-- results:retrieval --> and <!-- /results -->, a line each"
        )
    return text


def pictures_of(page: Path, text: str, runs: Sequence[Run]) -> dict[Path, str]:
    """The files of the pictures that a page with drawn tables shows, in both themes."""
    files, blocks = {}, {match[2]: match[3] for match in _BLOCK.finditer(text)}
    for folder, name in dict.fromkeys(_PICTURE.findall(text)):
        if name not in PICTURES:
            raise ReportError(f"there is no picture {name!r}; name one of {', '.join(PICTURES)}")
        table = blocks.get(PICTURES[name].table) or TABLES[PICTURES[name].table].text(runs)
        for theme in THEMES:
            files[page.parent / folder / f"{name}-{theme}.svg"] = drawn_picture(PICTURES[name], table, theme)
    return files


@program
@click.option(
    "--page",
    "pages",
    default=PAGES,
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Page with tables; may be repeated.  [default: README.md, RESULTS.md, results/*.md]",
)
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Folder of the runs.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a table or picture differs from its runs.")
def main(pages: tuple[Path, ...], results: Path, check: bool) -> None:
    """Draw the tables and pictures of the pages from runs.

    --check also fails for a task whose runs no table shows. `list NAME` prints what changed since a run.

    \b
    Example:
        python -m benchmarks report --check
    """
    runs = read_runs(results)
    after: dict[Path, str] = {}
    for page in pages:
        after |= _drawn_page(page, page.read_text("utf-8"), runs)
    if check:
        _check(after, runs)
        return
    for file, text in after.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")


def _drawn_page(page: Path, text: str, runs: Sequence[Run]) -> dict[Path, str]:
    try:
        text = drawn(text, runs)
        return {page: text, **pictures_of(page, text, runs)}
    except ReportError as error:
        raise click.ClickException(f"{page.name}: {error}") from error


def _check(after: Mapping[Path, str], runs: Sequence[Run]) -> None:
    committed = {file: file.read_text("utf-8") if file.is_file() else "" for file in after}
    stale = [file.name for file in after if after[file] != committed[file]]
    if stale:
        raise click.ClickException(
            f"these files differ from what the runs give: {', '.join(stale)}; draw them: python -m benchmarks report"
        )
    if missing := not_shown(after.values(), runs):
        blocks = ", ".join(f"<!-- results:{name} -->" for name in missing)
        raise click.ClickException(
            f"there are runs that no table of {' or '.join(page.name for page in after)} shows; add {blocks}, "
            "each with <!-- /results --> below it"
        )
