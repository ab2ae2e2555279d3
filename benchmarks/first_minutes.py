"""Runs the ten commonest first tries of a new user, by an earlier commit and by this one."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import click

from benchmarks.newcomers.record import FirstMinutesRecord, TryRow
from benchmarks.newcomers.running import attempt, run_code
from benchmarks.newcomers.table import first_minutes_table
from benchmarks.newcomers.tries import TRIES
from benchmarks.options import log, record_option
from benchmarks.program import origin_of, program
from benchmarks.record_file import write_record

_CHECKOUT = Path(__file__).resolve().parents[1]
_EIPS = _CHECKOUT / "demo" / "corpus" / "eips"
_DRAFT = "eip-2930.md"
N_PAPERS = 8
_INDEX = 'import sys\nfrom indexer.cli import main\nsys.argv = ["longmatch", "index", "papers.lm", "papers"]\n'
N_QUICK = 3  # tries


class NotPrepared(click.ClickException):
    """The index that the tries need could not be made."""


def prepare(folder: Path, checkout: Path, encode: str) -> None:
    """Write a few documents and index them with the packages of a checkout.

    Args:
        folder: that the tries run in; made.
        checkout: of this project.
        encode: as of `longmatch index`; "" for a commit that has no such option.

    Raises:
        NotPrepared: the run failed.
    """
    (folder / "papers").mkdir(parents=True)
    for paper in sorted(_EIPS.glob("*.md"))[:N_PAPERS]:
        shutil.copy(paper, folder / "papers")
    shutil.move(folder / "papers" / _DRAFT, folder / "draft.md")
    options = f'sys.argv += ["--encode", "{encode}"]\n' if encode else ""
    done, _ = run_code(f"{_INDEX}{options}main()", checkout, folder)
    if done.returncode:
        raise NotPrepared(f"{checkout} did not index the documents: {done.stderr[-300:]}")


@program
@click.option("--before", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Earlier checkout.")
@click.option("--quick", is_flag=True, help=f"The first {N_QUICK} tries, by words alone; says that the program works.")
@record_option
@click.pass_context
def main(context: click.Context, before: Path | None, quick: bool, out: Path) -> None:
    """Run what new users try first, and record what they see.

    \b
    Example:
        git worktree add ../before 662f4eb
        python -m benchmarks study first_minutes --before ../before
    """
    origin = origin_of(context, 0)
    encode = "none" if quick else "later"
    rows = []
    with tempfile.TemporaryDirectory(prefix="longmatch-") as work:
        places = {"after": (_CHECKOUT, encode)} | ({"before": (before.resolve(), "")} if before else {})
        for name, (checkout, way) in places.items():
            log(f"indexing documents with {checkout}")
            prepare(Path(work) / name, checkout, way)
        for one in TRIES[:N_QUICK] if quick else TRIES:
            log(one.name)
            earlier = attempt(one, one.before, before.resolve(), Path(work) / "before") if before else None
            rows.append(TryRow(one.name, earlier, attempt(one, one.after, _CHECKOUT, Path(work) / "after")))
            for name in places:
                shutil.rmtree(Path(work) / name / "new.lm", ignore_errors=True)
    record = FirstMinutesRecord(_commit(before) if before else "", encode, quick, rows, origin)
    write_record(record, out)
    click.echo(first_minutes_table([record]))


def _commit(checkout: Path) -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=False)
    return done.stdout.strip()
