"""`longmatch query`: rank an index against documents."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from engine.search.allowance import CANDIDATES, Allowance
from indexer.cli.cluster import placed_partitions, ray_option
from indexer.cli.novelty import check_novelty_options, novelty_answers, print_novelty
from indexer.cli.options import (
    FAILED,
    PARTLY,
    existing_index_argument,
    opened_index,
    search_device_option,
    typed_command,
)
from indexer.cli.output_file import write_output
from indexer.cli.query_files import Failure, left_out_note, missing_files, opened_reader, read_named
from indexer.cli.question_options import (
    diversify_option,
    explain_option,
    min_pair_option,
    skip_option,
    weight_option,
)
from indexer.cli.search_options import (
    exact_option,
    file_options,
    format_option,
    matrix_option,
    pairs_option,
    where_option,
    without_option,
)
from indexer.cli.standard_input import as_option, check_form

if TYPE_CHECKING:
    from engine import Document, Index, Result
    from engine.views import Novelty, SectionMatrix

    _Found: TypeAlias = tuple[Result, tuple[SectionMatrix, ...]]


_OF_MODELS = ("table", "json", "jsonl", "html")  # formats that show the explanation of the model


@click.command()
@existing_index_argument
@click.argument("documents", nargs=-1, metavar="[DOCUMENT]...")
@click.option(
    "--id", "doc_ids", multiple=True, metavar="ID", help="Use this document of INDEX as the query; may be repeated."
)
@click.option("--text", "texts", multiple=True, help="Use this text as the query; may be repeated.")
@as_option
@click.option(
    "-k", "k", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="Number of hits per query."
)
@click.option(
    "--offset",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Number of hits to skip, for pages.",
)
@where_option
@without_option
@skip_option
@weight_option
@click.option(
    "--mode",
    type=click.Choice(["similar", "containment", "novelty"]),
    default="similar",
    show_default=True,
    help="What to find: similar documents, documents that contain the query, or sections of the query that no "
    "document contains.",
)
@diversify_option
@min_pair_option
@explain_option
@click.option("--with-itself", is_flag=True, help="Keep documents with the same content as the query among the hits.")
@click.option(
    "--candidates",
    default=CANDIDATES,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Encode the N best candidates by words that have no vectors yet.",
)
@click.option("--encode-tokens", type=click.IntRange(1), metavar="N", help="Limit of tokens to encode for candidates.")
@exact_option
@ray_option("Search partitions as actors of")
@pairs_option(None, "3, in HTML 10; of novelty 1, in HTML 3")
@matrix_option
@format_option(["table", "json", "jsonl", "csv", "trec", "html", "bibtex", "ris", "parquet", "arrow"])
@file_options
@search_device_option
def query(
    index: Path,
    documents: tuple[str, ...],
    doc_ids: tuple[str, ...],
    texts: tuple[str, ...],
    form_of_stdin: str | None,
    k: int,
    offset: int,
    where: str | None,
    without: tuple[str, ...],
    skip: tuple[str, ...],
    weights: dict[str, float],
    mode: str,
    diversify: bool,
    min_pair: float,
    explain: str,
    with_itself: bool,
    candidates: int,
    encode_tokens: int | None,
    exact: bool,
    ray_address: str | None,
    n_pairs: int | None,
    matrix: bool,
    form: str,
    output: Path | None,
    read_seconds: float,
    read_memory: int,
    device: str | None,
) -> None:
    """Find the documents of INDEX that match a DOCUMENT, and show why.

    '-' is standard input. Each DOCUMENT, and each line of a .jsonl file, is a
    separate query. A document of INDEX with the same content as the query is left
    out of its hits and named on standard error.

    \b
    Example:
        longmatch query papers.lm draft.pdf -k 5 --sections 2
        longmatch query papers.lm draft.pdf --mode novelty
    """
    _check_use([*documents, *doc_ids, *texts], texts, mode, form, output, matrix=matrix)
    if explain == "model" and form not in _OF_MODELS:
        raise click.UsageError(f"--format {form} shows no --explain model; use one of: {', '.join(_OF_MODELS)}")
    suffix = check_form(form_of_stdin)
    failed = missing_files(documents)
    named = [name for name in documents if name not in {failure.source for failure in failed}]
    answers: list[_Found] = []
    novelties: list[Novelty] = []
    if named or doc_ids or texts:
        options: dict[str, Any] = {
            "where": where,
            "without": without,
            "skip": skip,
            "allowance": Allowance(candidates, encode_tokens),
        }
        of_ranking = {"k": k, "offset": offset, "weights": weights, "mode": mode, "diversify": diversify}
        of_ranking |= {"min_pair": min_pair, "explain": explain}
        reading = opened_reader(named, read_seconds, read_memory)
        with (
            reading as reader,
            placed_partitions(index, ray_address) as placement,
            opened_index(index, device, placement=placement) as opened,
        ):
            found = chain(_text_queries(texts), _documents(read_named(named, reader, suffix), failed))
            if mode == "novelty":
                novelties = novelty_answers(opened, doc_ids, found, options, with_itself=with_itself)
            else:
                options |= of_ranking | {"exact": exact}
                answers = _answers(opened, doc_ids, found, options, with_itself=with_itself, matrix=matrix)
    if answers:
        _print(answers, form, n_pairs, output)
    if novelties:
        print_novelty(novelties, form, n_pairs, output)
    for failure in failed:
        click.echo(f"failed: {failure.source}: {failure.reason}", err=True)
    if failed:
        sys.exit(PARTLY if answers or novelties else FAILED)


def _check_use(
    named: Sequence[str], texts: Sequence[str], mode: str, form: str, output: Path | None, *, matrix: bool
) -> None:
    """Check that the options go together.

    Raises:
        click.UsageError: they do not go together.
    """
    if not named:
        raise click.UsageError("no query: name a DOCUMENT, '-' for standard input, --id DOC_ID or --text TEXT")
    if form in ("parquet", "arrow") and output is None:
        raise click.UsageError(f"--format {form} is binary; name a file: -o parts.{form}")
    if matrix and form == "html":
        raise click.UsageError("--matrix is for tables and JSON; the report has a heat map: leave --matrix out")
    if not all(map(str.strip, texts)):
        raise click.UsageError("--text is empty; give it some words")
    if mode == "novelty":
        check_novelty_options(click.get_current_context(), form)


def _text_queries(texts: Sequence[str]) -> Iterator[Document]:
    # Imported here, so that a usage error does not load the segmentation.
    from engine.text.document import Document
    from engine.text.segmentation import divide

    for text in texts:
        title = textwrap.shorten(text, 60, placeholder="…")
        yield Document("text", title, text, divide(text))


def _documents(found: Iterator[Document | Failure], failed: list[Failure]) -> Iterator[Document]:
    """The documents that could be read; the others are added to `failed`."""
    for one in found:
        if isinstance(one, Failure):
            failed.append(one)
        else:
            yield one


def _answers(
    index: Index,
    doc_ids: Sequence[str],
    documents: Iterable[Document],
    options: dict[str, Any],
    *,
    with_itself: bool,
    matrix: bool,
) -> list[_Found]:
    """Search with indexed documents, then with other documents."""
    for doc_id in options["without"]:
        index.position(doc_id)
    answers = []
    for doc_id in doc_ids:
        result = index.search_id(doc_id, **options)
        answers.append((result, _matrices(index, doc_id, result) if matrix else ()))
    for document in documents:
        copies = [] if with_itself else index.copies(document)
        if copies:
            click.echo(left_out_note(document, copies), err=True)
        without = [*options["without"], *(copy for copy in copies if copy not in options["without"])]
        result = index.search(document, **options | {"without": without})
        answers.append((result, _matrices(index, document, result) if matrix else ()))
    return answers


def _matrices(index: Index, query: Document | str, result: Result) -> tuple[SectionMatrix, ...]:
    return tuple(index.section_matrix(query, hit.doc_id) for hit in result.hits)


def _print(found: Sequence[_Found], form: str, n_pairs: int | None, output: Path | None) -> None:
    """Write answers to a file or to standard output.

    For formats other than table, print on standard error why a result has no hits.
    """
    from engine.report.matrix import matrix_lines
    from engine.report.table import N_PAIRS, no_hits, result_lines
    from engine.result import N_MATCHES
    from indexer.cli.output import Answer, Layout, render
    from indexer.cli.terminal import PIPE_WIDTH, has_styles, show, width

    if n_pairs is None:
        n_pairs = N_MATCHES if form == "html" else N_PAIRS
    answers = [Answer(*one) for one in found]
    if form != "table":
        for answer in answers:
            if not answer.result.hits:
                click.echo(f"{answer.result.query.title}: {no_hits(answer.result)}", err=True)
    if output is not None:
        write_output(output, render(answers, form, Layout(n_pairs, PIPE_WIDTH, typed_command())))
    elif form == "table" and has_styles():
        for number, answer in enumerate(answers):
            lines = result_lines(answer.result, n_pairs=n_pairs, width=width())
            for matrix in answer.matrices:
                lines += [(), *matrix_lines(matrix, width=width())]
            show([(), *lines] if number else lines)
    else:
        click.echo(render(answers, form, Layout(n_pairs, width(), typed_command())), nl=False)
