"""`longmatch compare`: compare two documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.search.request import Request
from engine.text.outside import json_text
from indexer.cli.options import device_option, opened_index, typed_command
from indexer.cli.output_file import write_output
from indexer.cli.reading import Failure, as_option, check_form, missing_files, opened_reader, read_named
from indexer.cli.request_options import request_options
from indexer.cli.search_options import file_options, format_option, matrix_option, pairs_option
from indexer.cli.terminal import echo_text

if TYPE_CHECKING:
    from engine.text.document import Document
    from engine.views import Comparison


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
@format_option(["table", "json", "html"])
@file_options
@device_option
def compare(
    documents: tuple[str, ...],
    index: Path | None,
    doc_id: str | None,
    form_of_stdin: str | None,
    encoder: str | None,
    request: Request,
    n_pairs: int,
    matrix: bool,
    form: str,
    output: Path | None,
    read_seconds: float,
    read_memory: int,
    device: str | None,
) -> None:
    """Show which sections of document A match which sections of document B.

    The parts sum to the score of B for the query A. Without --index there are no
    thresholds, so the score is high for any two texts. With --index it is the
    score that a search of INDEX with A would give to B. '-' is standard input.

    \b
    Example:
        longmatch compare draft.pdf paper.pdf --matrix
        longmatch compare draft.pdf --index papers.lm --id smith2020.pdf
        longmatch compare mine.xml theirs.xml --weight claims=3,abstract=0
    """
    _check_use(documents, index, doc_id, encoder)
    if matrix and form == "html":
        raise click.UsageError("--matrix is for tables and JSON; the report has a heat map: leave --matrix out")
    suffix = check_form(form_of_stdin)
    if failed := missing_files(documents):
        raise _unread(failed[0])
    with opened_reader(documents, read_seconds, read_memory) as reader:
        read = [_only(name, list(read_named([name], reader, suffix))) for name in documents]
    comparison = _compared(read, index, doc_id, encoder, device, request)
    _print(comparison, form, n_pairs, matrix, output)


def _check_use(documents: tuple[str, ...], index: Path | None, doc_id: str | None, encoder: str | None) -> None:
    """Check that arguments and options go together.

    Raises:
        click.UsageError: they do not go together.
    """
    if doc_id is not None and index is None:
        raise click.UsageError("--id needs --index, which holds the document")
    if encoder is not None and index is not None:
        raise click.UsageError("--encoder and --index exclude each other: an index has its own encoder")
    wanted = 1 if doc_id is not None else 2
    if len(documents) != wanted:
        use = "A --index INDEX --id ID" if wanted == 1 else "A B, or A --index INDEX --id ID"
        raise click.UsageError(f"{len(documents)} documents are named; compare two: longmatch compare {use}")


def _only(name: str, found: list[Document | Failure]) -> Document:
    """The only document found under a name.

    Raises:
        click.ClickException: the document could not be read, or there is no document or several.
    """
    if len(found) != 1:
        count = f"{len(found):,} documents" if found else "no document"
        raise click.ClickException(f"{name} holds {count}, not one; compare a file of one document")
    if isinstance(found[0], Failure):
        raise _unread(found[0])
    return found[0]


def _unread(failure: Failure) -> click.ClickException:
    return click.ClickException(f"{failure.source}: {failure.reason}")


def _compared(
    documents: list[Document],
    index: Path | None,
    doc_id: str | None,
    encoder: str | None,
    device: str | None,
    request: Request,
) -> Comparison:
    # Imported here, so that a usage error does not load the encoder.
    from engine.comparison import compare_alone
    from engine.views import comparison_view

    if index is None:
        return comparison_view(compare_alone(documents[0], documents[1], encoder, request, device=device))
    with opened_index(index, device) as opened:
        return opened.compare(documents[0], doc_id if doc_id is not None else documents[1], request)


def _print(comparison: Comparison, form: str, n_pairs: int, matrix: bool, output: Path | None) -> None:
    from engine.report.contract import envelope
    from engine.report.lines import plain
    from engine.report.matrix import matrix_lines
    from engine.report.table import comparison_lines
    from indexer.cli.terminal import PIPE_WIDTH, show, width

    if form == "json":
        values = comparison.to_dict(n_pairs=n_pairs, matrix=matrix)
        _write(json_text(envelope([values]), indent=1) + "\n", output)
        return
    if form == "html":
        _write(comparison.to_html(n_pairs=n_pairs, command=typed_command()), output)
        return
    n_columns = width() if output is None else PIPE_WIDTH
    lines = comparison_lines(comparison, n_pairs=n_pairs, width=n_columns)
    if matrix:
        lines += [(), *matrix_lines(comparison.matrix, width=n_columns)]
    if output is None:
        show(lines)
    else:
        write_output(output, plain(lines) + "\n")


def _write(text: str, output: Path | None) -> None:
    if output is None:
        echo_text(text, nl=False)
    else:
        write_output(output, text)
