"""`longmatch query --mode novelty`: which sections of a document are in no document of the index."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.text.outside import json_text
from indexer.cli.options import typed_command
from indexer.cli.output_file import write_output
from indexer.cli.terminal import echo_text

if TYPE_CHECKING:
    from engine.views import Novelty


def check_novelty_format(form: str) -> None:
    """Check that a format can show novelty.

    Raises:
        click.UsageError: it cannot.
    """
    if form not in _FORMATS:
        raise click.UsageError(f"--format {form} shows no novelty; use one of: {', '.join(_FORMATS)}")


def print_novelty(found: Sequence[Novelty], form: str, n_pairs: int | None, output: Path | None) -> None:
    """Write novelties to a file or to standard output."""
    from engine.novelty import N_PAIRS as OF_REPORT
    from engine.report.table import N_NOVELTY_PAIRS, novelty_lines
    from indexer.cli.terminal import PIPE_WIDTH, has_styles, show, width

    default = OF_REPORT if form == "html" else N_NOVELTY_PAIRS
    shown = default if n_pairs is None else n_pairs
    if output is not None:
        write_output(output, _FORMATS[form](found, shown, PIPE_WIDTH))
    elif form == "table" and has_styles():
        for number, one in enumerate(found):
            lines = novelty_lines(one, n_pairs=shown, width=width())
            show([(), *lines] if number else lines)
    else:
        echo_text(_FORMATS[form](found, shown, width()), nl=False)


def _table(found: Sequence[Novelty], n_pairs: int, width: int) -> str:
    from engine.report.table import novelty_table

    return "\n\n".join(novelty_table(one, n_pairs=n_pairs, width=width) for one in found) + "\n"


def _json(found: Sequence[Novelty], n_pairs: int, _width: int) -> str:
    from engine.report.contract import envelope

    values = envelope([one.to_dict(n_pairs=n_pairs) for one in found])
    return json_text(values, indent=1) + "\n"


def _jsonl(found: Sequence[Novelty], n_pairs: int, _width: int) -> str:
    from indexer.cli.output import json_line

    return "".join(json_line(one.to_dict(n_pairs=n_pairs)) for one in found)


def _html(found: Sequence[Novelty], n_pairs: int, _width: int) -> str:
    from engine.report.page import novelty_page

    return novelty_page(found, n_pairs=n_pairs, command=typed_command())


def _csv(found: Sequence[Novelty], n_pairs: int, _width: int) -> str:
    from engine.report.rows import NOVELTY_COLUMNS, as_cell, novelty_rows

    text = io.StringIO()
    rows = csv.DictWriter(text, NOVELTY_COLUMNS, lineterminator="\n")
    rows.writeheader()
    for one in found:
        for row in novelty_rows(one.to_dict(n_pairs=max(1, n_pairs))):
            rows.writerow({name: as_cell(value) for name, value in row.items()})
    return text.getvalue()


_FORMATS: dict[str, Callable[[Sequence[Novelty], int, int], str]] = {
    "table": _table,
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "html": _html,
}
