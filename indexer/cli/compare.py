"""`longmatch compare`: compare two documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.search.request import Request
from engine.text.outside import json_text
from indexer.cli.options import collected, device_option, opened_index, request_options, typed_command
from indexer.cli.output_file import Shown, emit, emit_lines, file_options, format_option, matrix_option, pairs_option
from indexer.cli.reading import Reading, as_option, read_each

if TYPE_CHECKING:
    from engine.result import Result


@click.command()
@click.argument("documents", nargs=-1, required=True, metavar="A [B]")
@click.option(
    "--index",
    "index",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="INDEX",
    help="Use the thresholds and word statistics of INDEX.",
)
@click.option("--id", "doc_id", metavar="ID", help="Compare A with this document of INDEX instead of B.")
@as_option
@click.option("--encoder", metavar="NAME", help="Encoder, without --index; by default longmatch-minilm (bundled).")
@request_options("skip", "weights")
@pairs_option(10)
@matrix_option
@click.option(
    "--changes", is_flag=True, help="Show which words changed from A to B, section by section, in place of parts."
)
@format_option(["table", "json", "html"])
@file_options
@device_option
@collected(shown=Shown)
def compare(
    documents: tuple[str, ...],
    index: Path | None,
    doc_id: str | None,
    encoder: str | None,
    request: Request,
    shown: Shown,
    reading: Reading,
    device: str | None,
) -> None:
    """Show which sections of document A match which sections of document B.

    The parts sum to the score of B for the query A. Without --index there are no
    thresholds, so the score is high for any two texts. With --index it is the
    score that a search of INDEX with A would give to B. '-' is standard input.

    \b
    Example:
        longmatch compare draft.pdf paper.pdf --matrix
        longmatch compare old.docx new.docx --changes
        longmatch compare draft.pdf --index papers.lm --id smith2020.pdf
        longmatch compare mine.xml theirs.xml --weight claims=3,abstract=0
    """
    _check_use(documents, index, doc_id, encoder)
    if shown.matrix and shown.changes:
        raise click.UsageError("--matrix and --changes exclude each other")
    if shown.matrix and shown.form == "html":
        raise click.UsageError("--matrix is for tables and JSON; the report has a heat map: leave --matrix out")
    read = read_each(documents, reading)
    # Imported here, so that a usage error does not load the encoder.
    from engine.comparison import compare_alone

    if index is None:
        result = compare_alone(read[0], read[1], encoder, request, device=device)
    else:
        with opened_index(index, device) as opened:
            result = opened.compare(read[0], doc_id if doc_id is not None else read[1], request)
    if shown.changes:
        _print_changes(result, shown)
        return
    from indexer.cli.output import Answer, print_answers  # a usage error loads no report

    matrices = () if not shown.matrix or result.matrix is None else (result.matrix,)
    print_answers([Answer(result, matrices)], shown)


def _check_use(documents: tuple[str, ...], index: Path | None, doc_id: str | None, encoder: str | None) -> None:
    """Check that arguments and options go together."""
    if doc_id is not None and index is None:
        raise click.UsageError("--id needs --index, which holds the document")
    if encoder is not None and index is not None:
        raise click.UsageError("--encoder and --index exclude each other: an index has its own encoder")
    wanted = 1 if doc_id is not None else 2
    if len(documents) != wanted:
        use = "A --index INDEX --id ID" if wanted == 1 else "A B, or A --index INDEX --id ID"
        raise click.UsageError(f"{len(documents)} documents are named; compare two: longmatch compare {use}")


def _print_changes(result: Result, shown: Shown) -> None:
    from engine.report.changes import changes_dict, changes_html, changes_lines, changes_of
    from engine.report.contract import envelope, result_dict

    changes = changes_of(result)
    if shown.form == "table":
        emit_lines(lambda width: changes_lines(changes, width=width), shown.output)
    elif shown.form == "json":
        values = result_dict(result, n_pairs=shown.n_pairs) | {"changes": changes_dict(changes)}
        emit(json_text(envelope([values]), indent=1) + "\n", shown.output)
    else:
        emit(changes_html(changes, command=typed_command()), shown.output)
