"""`longmatch show` and `longmatch export`: what an index holds, and its tables as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import numpy as np

from engine.environment import check_extra
from indexer.cli.options import existing_index_argument, json_option, opened_index
from indexer.cli.output_file import opened_output, output_option
from indexer.cli.terminal import echo_text, log
from indexer.cli.terminal import show as show_lines

if TYPE_CHECKING:
    from engine.report.arrow import What


@click.command()
@existing_index_argument
@click.argument("doc_id", required=False)
@click.option("--documents", is_flag=True, help="List all documents.")
@click.option("--fields", is_flag=True, help="List the metadata fields for filters, with types and examples.")
@click.option("--failures", is_flag=True, help="List the documents that could not be indexed, with reasons.")
@click.option("--cited-by", is_flag=True, help="List the documents that name DOC_ID, with the citing sentences.")
@click.option("--text", is_flag=True, help="Print the text of DOC_ID as it was read.")
@click.option(
    "--section", metavar="N|HEADING", help="Print one section, by its number, its heading or a part of its heading."
)
@click.option("--page", type=click.IntRange(1), metavar="N", help="Print one page (formats with pages).")
@json_option
def show(
    index: Path,
    doc_id: str | None,
    documents: bool,
    fields: bool,
    failures: bool,
    cited_by: bool,
    text: bool,
    section: str | None,
    page: int | None,
    as_json: bool,
) -> None:
    """Show what INDEX holds, or metadata and sections of one document.

    Without DOC_ID: counts, coverage, encoder, FAISS index and measured recall.

    \b
    Example:
        longmatch show papers.lm
        longmatch show papers.lm --documents
        longmatch show papers.lm peps/pep-0484.md --section Rationale
        longmatch show papers.lm peps/pep-0484.md --cited-by
    """
    _check_options(
        doc_id,
        of_index={"--documents": documents, "--fields": fields, "--failures": failures},
        of_document={
            "--cited-by": cited_by,
            "--text": text,
            "--section": section is not None,
            "--page": page is not None,
        },
    )
    from indexer.cli import describe

    with opened_index(index) as opened:
        if doc_id is None:
            views = [
                (documents, describe.list_documents),
                (fields, describe.list_fields),
                (failures, describe.list_failures),
                (True, describe.describe_index),
            ]
            show_lines(next(view for is_wanted, view in views if is_wanted)(opened, as_json))
        elif section is not None:
            echo_text(describe.passage_text(describe.section_texts(opened.document(doc_id), section), as_json))
        elif page is not None:
            echo_text(describe.passage_text([describe.page_text(opened.document(doc_id), page)], as_json))
        elif cited_by:
            show_lines(describe.list_citing(opened, doc_id, as_json))
        else:
            show_lines(describe.describe_document(opened, doc_id, text, as_json))


def _check_options(doc_id: str | None, *, of_index: dict[str, bool], of_document: dict[str, bool]) -> None:
    """Check that at most one view is wanted, of the index without DOC_ID and of the document with it."""
    chosen = [name for name, is_wanted in (of_index | of_document).items() if is_wanted]
    if len(chosen) > 1:
        raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other; give one of them")
    if doc_id is None and chosen and chosen[0] in of_document:
        raise click.UsageError(f"{chosen[0]} needs a DOC_ID; list all documents: longmatch show INDEX --documents")
    if doc_id is not None and chosen and chosen[0] in of_index:
        raise click.UsageError(f"{chosen[0]} shows all of INDEX; leave out DOC_ID")


FORMS: dict[str, Literal["parquet", "arrow"]] = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}


@click.command()
@existing_index_argument
@click.option(
    "--what",
    type=click.Choice(["documents", "sections", "vectors"]),
    default="documents",
    show_default=True,
    help="Rows of the table.",
)
@click.option("--where", metavar="FILTER", help="Metadata filter; see longmatch query.")
@output_option
def export(index: Path, what: What, where: str | None, output: Path | None) -> None:
    """Write documents, sections or vectors of INDEX to a file for other programs.

    The file's name gives the format: .parquet, or .arrow (the file format of
    Arrow IPC, which pandas reads as Feather). The option --format parquet of
    longmatch query writes the parts of results.

    \b
    Example:
        longmatch export papers.lm --what sections -o sections.parquet
    """
    form = None if output is None else FORMS.get(output.suffix.lower())
    if output is None or form is None:
        raise click.UsageError("name a file that ends in .parquet or .arrow: -o documents.parquet")
    check_extra("pyarrow", "longmatch export", "pyarrow", "arrow")
    # Loads pyarrow, which no other command needs.
    from engine.report.arrow import index_export

    with opened_index(index) as opened:
        snapshot, chosen = opened.snapshot, opened.matching(where)
        table = index_export(snapshot, what, chosen)
        with opened_output(output) as file:
            n_rows = table.write(file, form)
        log(f"{n_rows:,} rows, {len(chosen):,} documents")
        n_missing = int(np.count_nonzero(~snapshot.has_vectors[chosen])) if what == "vectors" else 0
        if n_missing:
            log(f"{n_missing:,} documents have no vectors yet; encode them: longmatch index {index}")
