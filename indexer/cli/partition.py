"""`longmatch partition`: copy an index into another number of partitions."""

from __future__ import annotations

from pathlib import Path

import click

from indexer.cli.options import existing_index_argument


@click.command()
@existing_index_argument
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "-p",
    "--partitions",
    "n_partitions",
    required=True,
    type=click.IntRange(1),
    metavar="N",
    help="Number of partitions of OUT; 1 makes an index without partitions.",
)
def partition(index: Path, out: Path, n_partitions: int) -> None:
    """Copy INDEX into a new index OUT of N partitions; nothing is encoded.

    Each partition is an index with a share of the documents. One query searches all
    partitions at the same time and returns the hits, scores and parts of one index.
    All commands take OUT like any other INDEX. INDEX may be partitioned itself.

    \b
    Example:
        longmatch partition papers.lm papers.parts -p 4
        longmatch query papers.parts draft.pdf
    """
    from indexer.partitions.splitting import partition as copy_into

    report = copy_into(index, out, n_partitions, log=lambda line: click.echo(line, err=True))
    for number, (n_documents, n_chunks) in enumerate(zip(report.n_documents, report.n_chunks, strict=True)):
        click.echo(f"partition {number}: {n_documents:,} documents, {n_chunks:,} chunks")
