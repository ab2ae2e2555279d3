"""`longmatch connect`: make one index of partitions on servers, in databases or in other folders."""

from __future__ import annotations

from pathlib import Path

import click

from indexer.cli.access import timeout_option


@click.command()
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@timeout_option
def connect(out: Path, addresses: tuple[str, ...], timeout: float) -> None:
    """Make an index OUT of partitions that are elsewhere.

    ADDRESS is the address of a server that runs `longmatch serve papers.parts/NNNN.lm`,
    the address of a PostgreSQL schema into which a partition was copied, or the folder
    of a partition. All partitions must be named, in any order; several servers of one
    partition are replicas. OUT holds the addresses and the reference sample, no
    documents. query, pairs, chart, show, info, serve and mcp take OUT as INDEX;
    commands that write must run where the folders are. The token of the servers is
    read from the variable LONGMATCH_TOKEN; passwords of a database come from ~/.pgpass
    or PGPASSWORD.

    \b
    Example:
        longmatch connect papers.net http://a:8321 http://b:8321
        longmatch connect papers.net http://a:8321 papers.parts/0001.lm 'postgresql://HOST/DB?schema=p2'
        longmatch query papers.net draft.pdf
    """
    from engine.remote.exchange import Access
    from indexer.partitions.connecting import connect as connect_to

    manifest = connect_to(out, addresses, Access(timeout))
    for number, entry in enumerate(manifest.partitions):
        where = " or ".join((entry.address, *entry.replicas))
        click.echo(f"partition {number}: {entry.n_documents:,} documents at {where}")
