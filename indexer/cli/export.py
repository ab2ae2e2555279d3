"""`longmatch export`: documents, sections or vectors of an index as a file of Parquet or Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import numpy as np

from engine.extras import check_extra
from indexer.cli.options import existing_index_argument, opened_index
from indexer.cli.output_file import opened_output, output_option
from indexer.cli.terminal import echo

if TYPE_CHECKING:
    from engine.report.arrow import What

FORMS: dict[str, Literal["parquet", "arrow"]] = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}


@click.command()
@existing_index_argument
@click.option(
    "--what",
    type=click.Choice(["documents", "sections", "vectors"]),
    default="documents",
    show_default=True,
    help="Rows of the table.",
)
@click.option("--where", metavar="FILTER", help="Metadata filter; see longmatch query.")
@output_option
def export(index: Path, what: What, where: str | None, output: Path | None) -> None:
    """Write documents, sections or vectors of INDEX to a file for other programs.

    The file's name gives the format: .parquet, or .arrow (the file format of
    Arrow IPC, which pandas reads as Feather). The option --format parquet of
    longmatch query writes the parts of results.

    \b
    Example:
        longmatch export papers.lm --what sections -o sections.parquet
    """
    form = None if output is None else FORMS.get(output.suffix.lower())
    if output is None or form is None:
        raise click.UsageError("name a file that ends in .parquet or .arrow: -o documents.parquet")
    check_extra("pyarrow", "longmatch export", "pyarrow", "arrow")
    # Loads pyarrow, which no other command needs.
    from engine.report.arrow import index_export

    with opened_index(index) as opened:
        snapshot, chosen = opened.snapshot, opened.matching(where)
        table = index_export(snapshot, what, chosen)
        with opened_output(output) as file:
            n_rows = table.write(file, form)
        echo(f"{n_rows:,} rows, {len(chosen):,} documents", err=True)
        n_missing = int(np.count_nonzero(~snapshot.has_vectors[chosen])) if what == "vectors" else 0
        if n_missing:
            echo(f"{n_missing:,} documents have no vectors yet; encode them: longmatch index {index}", err=True)
