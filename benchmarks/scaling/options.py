"""What the command lines have in common that grow an index and ask it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.store.ann import AUTO
from indexer.cli.sizes import parse_bytes
from indexer.generation.recall import RECALL_FLOOR

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--factory", default=AUTO, show_default=True, help="FAISS factory string."),
    click.option("--recall-floor", default=RECALL_FLOOR, show_default=True, help="Of a generation that is published."),
    click.option("--memory", "memory_bytes", type=parse_bytes, metavar="SIZE", help="Budget of what publishes."),
    click.option("--query-chunks", default=40, show_default=True, type=click.IntRange(1), help="Of a query, about."),
    click.option("-k", "--top", "k", default=10, show_default=True, type=click.IntRange(1), help="Targets to return."),
    click.option(
        "--threads", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(1), help="Of a search."
    ),
    click.option("--seed", default=0, show_default=True, help="Of growth and queries."),
    click.option("--work", type=click.Path(path_type=Path), help="Folder for grown indexes; kept and gone on with."),
)


def grown_options(command: Command) -> Command:
    """How an index is grown, published and asked."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
