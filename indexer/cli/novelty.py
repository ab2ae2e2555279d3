"""`longmatch query --mode novelty`: which sections of a document are in no document of the index."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from indexer.cli.options import typed_command
from indexer.cli.output_file import write_output
from indexer.cli.query_files import left_out_note

if TYPE_CHECKING:
    from engine import Document, Index
    from engine.views import Novelty

TYPED = ParameterSource.COMMANDLINE
_OF_RANKINGS = (
    "k",
    "offset",
    "weights",
    "diversify",
    "min_pair",
    "explain",
    "exact",
    "matrix",
)  # parameters that have no meaning for novelty


def check_novelty_options(context: click.Context, form: str) -> None:
    """Check that the options of a command go with --mode novelty.

    Raises:
        click.UsageError: an option is for rankings of documents, or the format cannot show novelty.
    """
    for option in context.command.params:
        if option.name in _OF_RANKINGS and context.get_parameter_source(option.name) is TYPED:
            raise click.UsageError(f"{option.opts[-1]} is for rankings of documents; leave it out with --mode novelty")
    if form not in _FORMATS:
        raise click.UsageError(f"--format {form} shows no novelty; use one of: {', '.join(_FORMATS)}")


def novelty_answers(
    index: Index, doc_ids: Sequence[str], documents: Iterable[Document], options: dict[str, Any], *, with_itself: bool
) -> list[Novelty]:
    """The novelty of indexed documents, then of others; copies of a query are left out unless `with_itself`."""
    found = [index.novelty(doc_id, **options) for doc_id in doc_ids]
    for document in documents:
        copies = [] if with_itself else index.copies(document)
        if copies:
            click.echo(left_out_note(document, copies), err=True)
        without = list(dict.fromkeys([*options["without"], *copies]))
        found.append(index.novelty(document, **options | {"without": without}))
    return found


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
        click.echo(_FORMATS[form](found, shown, width()), nl=False)


def _table(found: Sequence[Novelty], n_pairs: int, width: int) -> str:
    from engine.report.table import novelty_table

    return "\n\n".join(novelty_table(one, n_pairs=n_pairs, width=width) for one in found) + "\n"


def _json(found: Sequence[Novelty], n_pairs: int, _width: int) -> str:
    from engine.report.contract import envelope

    values = envelope([one.to_dict(n_pairs=n_pairs) for one in found])
    return json.dumps(values, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _jsonl(found: Sequence[Novelty], n_pairs: int, _width: int) -> str:
    from indexer.cli.output import json_line

    return "".join(json_line(one.to_dict(n_pairs=n_pairs)) for one in found)


def _html(found: Sequence[Novelty], n_pairs: int, _width: int) -> str:
    from engine.report.novelty_page import novelty_page

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
