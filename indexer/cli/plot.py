"""`longmatch plot`: the map of an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.options import device_option, existing_index_argument, opened_index
from indexer.cli.output_file import check_picture, output_option, write_picture
from indexer.cli.reading import (
    Reading,
    read_each,
    reading_options,
)

if TYPE_CHECKING:
    from engine import Document, Index
    from engine.plots.style import Plot


@click.command()
@existing_index_argument
@click.argument("document", required=False)
@click.option("--id", "doc_id", metavar="ID", help="Mark this document of INDEX as the query.")
@click.option(
    "-k", "k", default=5, show_default=True, type=click.IntRange(1), metavar="N", help="Number of hits on the map."
)
@click.option("--by", metavar="FIELD", help="Colour the map by this metadata field.")
@click.option("--where", metavar="FILTER", help="Metadata filter for the map; see longmatch query.")
@output_option
@reading_options
@device_option
def plot(
    index: Path,
    document: str | None,
    doc_id: str | None,
    k: int,
    by: str | None,
    where: str | None,
    output: Path | None,
    reading: Reading,
    device: str | None,
) -> None:
    """Draw a map of INDEX, with its documents as points.

    Similar documents are near each other. With a DOCUMENT (or --id),
    the query is a star, and its hits have their ranks. The file's name gives the
    format: .png or .svg.

    \b
    Example:
        longmatch plot papers.lm draft.pdf --by year -o map.svg
    """
    check_picture(output, "longmatch plot", "-o map.svg")
    assert output is not None, "the check refuses None"
    if document is not None and doc_id is not None:
        raise click.UsageError("DOCUMENT and --id exclude each other; give one of them")
    query = None if document is None else read_each([document], reading)[0]
    with opened_index(index, device) as opened:
        write_picture(output, _map(opened, doc_id if query is None else query, k, by, where))


def _map(index: Index, query: Document | str | None, k: int, by: str | None, where: str | None) -> Plot:
    # Loads matplotlib, which only pictures need.
    from engine.plots.corpus_map import corpus_map, plot_map
    from engine.search.request import Request
    from engine.store.lookup import check_field

    if by is not None:
        check_field(index.snapshot.folder, by)
    result = None if query is None else index.search(query, Request(k=k, where=where))
    return plot_map(index, corpus_map(index, query, where), result=result, by=by)
