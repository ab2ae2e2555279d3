"""`longmatch query`, `show` and `info`: everything that only reads an index."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.allowance import CANDIDATES, Allowance
from indexer.cli.reading import document_reader, read_memory_option, read_seconds_option
from indexer.cli.shared import FAILED, PARTLY, index_argument, json_option, opened_index, search_device_option

if TYPE_CHECKING:
    from engine import Document, Index, Result
    from engine.readers import Unreadable
    from engine.result import SectionMatrix
    from indexer.reading import DocumentReader


@click.command()
@index_argument
@click.argument("documents", nargs=-1, metavar="[DOCUMENT]...")
@click.option("--id", "doc_ids", multiple=True, help="Search with an indexed document; may be repeated.")
@click.option("--text", "texts", multiple=True, help="Search with this text; may be repeated.")
@click.option("-k", "k", default=10, show_default=True, help="Hits of each query.")
@click.option("--offset", default=0, show_default=True, help="Hits to leave out first, for pages.")
@click.option("--where", help="Metadata filter, as: family = 'pep' and number >= 400")
@click.option(
    "--candidates",
    default=CANDIDATES,
    show_default=True,
    type=click.IntRange(0),
    help="Best documents by words that are encoded for the query, where they are not yet.",
)
@click.option(
    "--encode-tokens", type=click.IntRange(1), metavar="N", help="Encode about N tokens of them for a query, at most."
)
@click.option("--exact", is_flag=True, help="Scan all vectors, so that the ranking is certified.")
@click.option("--sections", "n_pairs", default=3, show_default=True, help="Section pairs shown of each hit.")
@click.option("--matrix", is_flag=True, help="Add the cosines of all sections, for each hit.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "jsonl", "csv", "trec"]), default="table", show_default=True
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write here, not to stdout.")
@read_seconds_option
@read_memory_option
@search_device_option
def query(
    index: Path,
    documents: tuple[str, ...],
    doc_ids: tuple[str, ...],
    texts: tuple[str, ...],
    k: int,
    offset: int,
    where: str | None,
    candidates: int,
    encode_tokens: int | None,
    exact: bool,
    n_pairs: int,
    matrix: bool,
    form: str,
    output: Path | None,
    read_seconds: float,
    read_memory: int,
    device: str | None,
) -> None:
    """Rank INDEX against whole documents ('-' reads text from stdin).

    Several documents, or a .jsonl file of them, are asked one after another.

    \b
    Example:
        longmatch query papers.lm draft.pdf -k 5 --sections 2
    """
    from indexer.cli.output import Answer, Layout, render

    if not documents and not doc_ids and not texts:
        raise click.UsageError("no query: name a DOCUMENT, '-' for stdin, --id DOC_ID or --text TEXT")
    failed: list[Unreadable] = []
    answers = []
    with document_reader(documents, read_seconds, read_memory) as reader, opened_index(index, device) as opened:
        options: dict[str, Any] = {
            "k": k,
            "offset": offset,
            "where": where,
            "exact": exact,
            "allowance": Allowance(candidates, encode_tokens),
        }
        for doc_id in doc_ids:
            result = opened.search_id(doc_id, **options)
            answers.append(Answer(result, _matrices(opened, doc_id, result) if matrix else ()))
        for document in [*_text_queries(texts), *_read_queries(documents, reader, failed)]:
            result = opened.search(document, **options)
            answers.append(Answer(result, _matrices(opened, document, result) if matrix else ()))
    if answers:
        width = max(60, min(shutil.get_terminal_size().columns, 120)) if sys.stdout.isatty() and not output else 80
        text = render(answers, form, Layout(n_pairs, width))
        if output is not None:
            output.write_text(text, encoding="utf-8")
        else:
            click.echo(text, nl=False)
    for failure in failed:
        click.echo(f"failed: {failure.source}: {failure.reason}", err=True)
    if failed:
        sys.exit(PARTLY if answers else FAILED)


def _text_queries(texts: tuple[str, ...]) -> Iterator[Document]:
    from engine.document import Document
    from engine.segmentation import divide

    for text in texts:
        if not text.strip():
            raise click.UsageError("--text is empty; give it some words")
        title = textwrap.shorten(text, 60, placeholder="…")
        yield Document("text", title, text, divide(text))


def _read_queries(
    names: tuple[str, ...], reader: DocumentReader | None, failed: list[Unreadable]
) -> Iterator[Document]:
    if reader is None:  # without names; the imports below take a third of a second
        return
    from engine.readers import Unreadable, read_bytes
    from indexer.requests import Request

    for name in names:
        found = read_bytes(sys.stdin.buffer.read(), "stdin.txt") if name == "-" else reader.read([Request(name)])
        for document in found:
            if isinstance(document, Unreadable):
                failed.append(document)
            else:
                yield document


def _matrices(index: Index, query: Document | str, result: Result) -> tuple[SectionMatrix, ...]:
    return tuple(index.section_matrix(query, hit.doc_id) for hit in result.hits)


@click.command()
@index_argument
@click.argument("doc_id", required=False)
@click.option("--text", is_flag=True, help="Print the whole text.")
@json_option
def show(index: Path, doc_id: str | None, text: bool, as_json: bool) -> None:
    """Show a document of INDEX as it was read: sections, offsets, metadata; without DOC_ID list all.

    \b
    Example:
        longmatch show papers.lm peps/pep-0484.md
    """
    from indexer.cli.describe import describe_document, list_documents

    with opened_index(index) as opened:
        click.echo(describe_document(opened, doc_id, text, as_json) if doc_id else list_documents(opened, as_json))


@click.command()
@index_argument
@click.option("--failures", is_flag=True, help="List the documents that could not be indexed, and why.")
@json_option
def info(index: Path, failures: bool, as_json: bool) -> None:
    """Show what INDEX holds: counts, coverage, encoder, generation and its measured recall.

    \b
    Example:
        longmatch info papers.lm
    """
    from indexer.cli.describe import describe_index, list_failures

    with opened_index(index) as opened:
        click.echo(list_failures(opened, as_json) if failures else describe_index(opened, as_json))
