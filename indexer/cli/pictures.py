"""Writes pictures to files, in the format given by the file name. Draws nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from engine.extras import check_extra
from indexer.cli.output_file import write_output

if TYPE_CHECKING:
    from engine.plots.style import Plot

_FORMS: dict[str, Literal["png", "svg"]] = {".png": "png", ".svg": "svg"}


def check_picture(path: Path | None, command: str, example: str) -> None:
    """Check that a picture can be written to a file.

    Args:
        path: path of the file; None if no file is named.
        command: command that draws the picture, for the message.
        example: option and name of a file that can be written, for the message.

    Raises:
        click.UsageError: no file is named, or its name does not end in .png or .svg.
        MissingExtra: matplotlib is not installed.
    """
    if path is None or path.suffix.lower() not in _FORMS:
        raise click.UsageError(f"name a file that ends in .png or .svg: {example}")
    check_extra("matplotlib", command, "matplotlib", "plot")


def write_picture(path: Path, figure: Plot) -> None:
    """Write a figure in the format given by the file name."""
    # Loads matplotlib, which only pictures need.
    from engine.plots.style import figure_file

    write_output(path, figure_file(figure, _FORMS[path.suffix.lower()]))
