"""`longmatch serve`: serve an index over HTTP."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path

import click

from engine.errors import MissingExtra
from indexer.cli.cluster import placed_partitions, ray_option
from indexer.cli.options import existing_index_argument
from indexer.cli.reading import read_memory_option, read_seconds_option
from indexer.cli.sizes import parse_bytes

_PACKAGES = {"fastapi": "FastAPI", "uvicorn": "uvicorn", "python_multipart": "python-multipart"}
_PACKAGES |= {"prometheus_client": "prometheus-client"}


@click.command()
@existing_index_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need a token.")
@click.option(
    "--port", default=8321, show_default=True, type=click.IntRange(0, 65535), metavar="N", help="0 uses a free port."
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Holds the bearer token that requests must have; else the variable LONGMATCH_TOKEN.",
)
@click.option(
    "--max-bytes",
    type=parse_bytes,
    default="32Mi",
    show_default=True,
    metavar="SIZE",
    help="Largest body of a request.",
)
@click.option(
    "--timeout",
    default=120.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Seconds until a request is answered with an error.",
)
@click.option(
    "--concurrency",
    default=16,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Requests that run or wait; further ones are refused at once.",
)
@click.option(
    "--threads",
    default=4,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Requests that run at the same time, each in its own copy of the opened index.",
)
@click.option("--store", is_flag=True, help="Commit vectors that are encoded for queries, where no process writes.")
@read_seconds_option
@read_memory_option
@ray_option("Search partitions as actors of")
@click.option("--device", help="cpu, cuda or cuda:N for the encoder; by default a GPU where there is one.")
def serve(
    index: Path,
    host: str,
    port: int,
    token_file: Path | None,
    max_bytes: int,
    timeout: float,
    concurrency: int,
    threads: int,
    store: bool,
    read_seconds: float,
    read_memory: int,
    ray_address: str | None,
    device: str | None,
) -> None:
    """Serve INDEX over HTTP: a search page, and search, documents, comparison, metrics.

    Open the printed address in a browser for the page. Requests and responses of
    programs are JSON; GET /openapi.json describes them. Addresses that other machines
    can reach need a token. SIGTERM and Ctrl-C let running requests finish. A change of
    INDEX is served within seconds.

    \b
    Example:
        longmatch serve papers.lm --port 8321
        curl -F file=@draft.pdf -F k=5 http://127.0.0.1:8321/v1/search/file
    """
    for module, package in _PACKAGES.items():
        if find_spec(module) is None:
            raise MissingExtra("longmatch serve", package, "serve")
    # Loads FastAPI, which no other command needs.
    from indexer.reading.reader import ReadLimits
    from indexer.serving.server import serve as run
    from indexer.serving.settings import Settings, read_token

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("longmatch").setLevel(logging.INFO)
    with placed_partitions(index, ray_address) as placement:
        settings = Settings(
            host=host,
            port=port,
            token=read_token(token_file),
            max_bytes=max_bytes,
            timeout=timeout,
            concurrency=concurrency,
            threads=min(threads, concurrency),
            store=store,
            device=device,
            read=ReadLimits(read_seconds, read_memory),
            placement=placement,
        )
        run(index, settings, log=lambda line: click.echo(line, err=True))
