"""`longmatch mcp`: an index as tools for a language model."""

from __future__ import annotations

from pathlib import Path

import click

from engine.extras import check_extra
from indexer.cli.options import device_option, existing_index_argument
from indexer.cli.reading import read_memory_option, read_seconds_option
from indexer.cli.terminal import log


@click.command()
@existing_index_argument
@click.option(
    "--files",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="FOLDER",
    help="Let the model search with the files of this folder; by default with texts and documents of INDEX alone.",
)
@read_seconds_option
@read_memory_option
@device_option
def mcp(index: Path, files: Path | None, read_seconds: float, read_memory: int, device: str | None) -> None:
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
    from indexer.mcp.server import mcp_server
    from indexer.reading.reader import ReadLimits

    with Index.open(index, device=device, store=False, log=log) as opened:
        mcp_server(opened, files=files, limits=ReadLimits(read_seconds, read_memory)).run()
