"""`longmatch serve` and `longmatch mcp`: serve an index over HTTP, or to a language model."""

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from engine.environment import check_extra
from engine.errors import MissingExtra
from indexer.cli.options import (
    GroupedCommand,
    Reading,
    device_option,
    existing_index_argument,
    option,
    parse_bytes,
    placed_partitions,
    ray_option,
    reading_options,
)
from indexer.cli.output import log_option
from indexer.cli.terminal import log

_PACKAGES = {"fastapi": "FastAPI", "uvicorn": "uvicorn", "python_multipart": "python-multipart"}
_PACKAGES |= {"prometheus_client": "prometheus-client"}
_HEADINGS = {"host": "Address", "max_bytes": "Limits", "store": "Search"}


@click.command(cls=GroupedCommand, headings=_HEADINGS)
@existing_index_argument
@option("--host", default="127.0.0.1", help="Address to listen on, by default 127.0.0.1; others need a token.")
@option("--port", default=8321, type=click.IntRange(0, 65535), help="Port, by default 8321; 0 uses a free one.")
@option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Holds the bearer token that requests must have; else the variable LONGMATCH_TOKEN.",
)
@option(
    "--max-bytes", type=parse_bytes, default="32Mi", metavar="SIZE", help="Largest body of a request, by default 32Mi."
)
@option(
    "--timeout",
    default=120.0,
    type=click.FloatRange(0, min_open=True),
    help="Seconds until a request is answered with an error, by default 120.",
)
@option(
    "--concurrency",
    default=16,
    type=click.IntRange(1),
    help="Requests that run or wait, by default 16; further ones are refused at once.",
)
@option("--threads", default=4, type=click.IntRange(1), help="Requests that run at the same time, by default 4.")
@reading_options
@option("--store", is_flag=True, help="Commit vectors that are encoded for queries, where no process writes.")
@log_option
@ray_option("Search partitions as actors of")
@option("--device", help="cpu, cuda or cuda:N for the encoder; by default a GPU where there is one.")
def serve(index: Path, ray_address: str | None, token_file: Path | None, reading: Reading, **settings: Any) -> None:  # noqa: ANN401
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
    from indexer.serving.app import serve as run
    from indexer.serving.settings import ServerSettings, read_token

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("longmatch").setLevel(logging.INFO)
    with placed_partitions(index, ray_address) as placement:
        settings |= {"token": read_token(token_file), "read": reading.limits, "placement": placement}
        settings["threads"] = min(settings["threads"], settings["concurrency"])
        run(index, ServerSettings(**settings), log=log)


@click.command()
@existing_index_argument
@option(
    "--files",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="FOLDER",
    help="Let the model search with the files of this folder; by default with texts and documents of INDEX alone.",
)
@reading_options
@device_option
def mcp(index: Path, files: Path | None, reading: Reading, device: str | None) -> None:
    """Serve INDEX to a language model over MCP, on standard input and output.

    An MCP client starts this command. Its tools search with a text, a document of
    INDEX or a file of FOLDER, and read sections. Nothing is written to INDEX.

    \b
    Example:
        longmatch mcp papers.lm --files drafts
    """
    check_extra("mcp", "longmatch mcp", "mcp", "mcp")
    # Loads the protocol, which no other command needs.
    from engine.index import Index
    from indexer.mcp import mcp_server

    with Index.open(index, device=device, store=False, log=log) as opened:
        mcp_server(opened, files=files, limits=reading.limits).run()
