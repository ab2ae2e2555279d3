"""Options of the commands that search with a document, besides those of the search: files and formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from indexer.cli.option_groups import together
from indexer.cli.output_file import output_option
from indexer.cli.reading import read_memory_option, read_seconds_option

DecoratedT = TypeVar("DecoratedT", bound=Callable[..., Any])

matrix_option = click.option("--matrix", is_flag=True, help="Also print the cosines of all section pairs.")
# The output file, and limits for reading the document.
file_options = together(output_option, read_seconds_option, read_memory_option)


def pairs_option(default: int | None, shown: bool | str = True) -> Callable[[DecoratedT], DecoratedT]:
    """`--sections`, the number of sections of the query that are shown.

    Args:
        default: default number.
        shown: whether the help shows the default, or a text that it shows instead.
    """
    return click.option(
        "--sections",
        "n_pairs",
        default=default,
        show_default=shown,
        type=click.IntRange(0),
        metavar="N",
        help="Number of sections of the query, and of section pairs, to show for each target.",
    )


def format_option(names: Sequence[str]) -> Callable[[DecoratedT], DecoratedT]:
    """`--format`; the first name is the default."""
    note = "; html is a report in one file" if "html" in names[1:] else ""
    note += ", bibtex and ris are references of the hits" if "bibtex" in names else ""
    return click.option(
        "--format",
        "form",
        type=click.Choice(names),
        default=names[0],
        show_default=True,
        help=f"Output format{note}.",
    )
