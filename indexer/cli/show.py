"""`longmatch show` and `info`: the contents of an index."""

from __future__ import annotations

from pathlib import Path

import click

from indexer.cli.options import existing_index_argument, json_option, opened_index


@click.command()
@existing_index_argument
@click.argument("doc_id", required=False)
@click.option("--text", is_flag=True, help="Print the text as it was read.")
@click.option(
    "--section", metavar="N|HEADING", help="Print one section, by its number, its heading or a part of its heading."
)
@click.option("--page", type=click.IntRange(1), metavar="N", help="Print one page (formats with pages).")
@json_option
def show(index: Path, doc_id: str | None, text: bool, section: str | None, page: int | None, as_json: bool) -> None:
    """Show metadata and sections of a document of INDEX; without DOC_ID, list all documents.

    \b
    Example:
        longmatch show papers.lm peps/pep-0484.md
        longmatch show papers.lm peps/pep-0484.md --section Rationale
    """
    if sum([text, section is not None, page is not None]) > 1:
        raise click.UsageError("--text, --section and --page exclude each other; give one of them")
    if doc_id is None and (text or section is not None or page is not None):
        raise click.UsageError("--text, --section and --page need a DOC_ID; list all documents: longmatch show INDEX")
    from indexer.cli.describe import describe_document, list_documents
    from indexer.cli.passages import page_text, passage_text, section_texts
    from indexer.cli.terminal import show as show_lines

    with opened_index(index) as opened:
        if doc_id is None:
            show_lines(list_documents(opened, as_json))
        elif section is not None:
            click.echo(passage_text(section_texts(opened.document(doc_id), section), as_json))
        elif page is not None:
            click.echo(passage_text([page_text(opened.document(doc_id), page)], as_json))
        else:
            show_lines(describe_document(opened, doc_id, text, as_json))


@click.command()
@existing_index_argument
@click.option("--failures", is_flag=True, help="List the documents that could not be indexed, with reasons.")
@click.option("--fields", is_flag=True, help="List the metadata fields for filters, with types and examples.")
@json_option
def info(index: Path, failures: bool, fields: bool, as_json: bool) -> None:
    """Show counts, coverage, encoder, FAISS index and measured recall of INDEX.

    \b
    Example:
        longmatch info papers.lm
        longmatch info papers.lm --fields
    """
    if failures and fields:
        raise click.UsageError("--failures and --fields exclude each other; give one of them")
    from indexer.cli.describe import describe_index, list_failures, list_fields
    from indexer.cli.terminal import show as show_lines

    with opened_index(index) as opened:
        if fields:
            show_lines(list_fields(opened, as_json))
        elif failures:
            show_lines(list_failures(opened, as_json))
        else:
            show_lines(describe_index(opened, as_json))
