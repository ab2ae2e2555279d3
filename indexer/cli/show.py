"""`longmatch show`, `longmatch export` and `longmatch plot`: what an index holds, as lines, tables and a map."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np

from engine.citing import Citation, cited_by
from engine.environment import check_extra
from engine.errors import QueryError, command_line
from engine.index import Index
from engine.report.contract import outline
from engine.report.lines import Line, Run, Style, counted, line, megabytes, shortened, table
from engine.search.request import Request
from engine.store.partitioned import check_key, stored_fields
from engine.text.cleaning import json_text
from engine.text.document import Document, MetadataValue, Scalar, section_label
from indexer.cli.options import (
    Reading,
    device_option,
    existing_index_argument,
    json_option,
    opened_index,
    read_each,
    reading_options,
)
from indexer.cli.output import check_picture, opened_output, output_option, write_picture
from indexer.cli.terminal import echo_text, log
from indexer.cli.terminal import show as show_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from engine.report.arrow import What

_N_NAMED = 3  # headings that an error suggests
_NO_WORDS = "none; add them: longmatch upkeep repair INDEX"
_EXAMPLE_COLUMNS = 40
_MAX_COLUMNS = 400  # of a metadata value; --json has all of it
_MAX_HEADING_COLUMNS = 60


def describe_index(index: Index, as_json: bool) -> list[Line]:
    """Counts, coverage, encoder, generation; as JSON, the documents by name and title too."""
    facts = index.facts
    if as_json:
        return _json(facts | {"n_documents": facts["documents"], "documents": _named_documents(index)})
    encoder, sections = facts["encoder"], counted(facts["sections"], "section")
    rows = [
        ("documents", f"{facts['documents']:,} in {sections} and {counted(facts['chunks'], 'chunk')}"),
        ("coverage", _coverage_line(facts)),
        ("failed", f"{facts['failures']:,}" + (" (see --failures)" if facts["failures"] else "")),
        ("encoder", _encoder_line(encoder, index.snapshot.folder)),
        ("vectors", f"{counted(facts['shards'], 'shard')}, {megabytes(facts['shard_bytes'])}"),
        ("words", f"language {facts['language']}" if facts["language"] else _NO_WORDS),
        ("reference", _reference_line(facts["reference"])),
        *_generation_rows(facts),
        ("not covered", f"{counted(facts['fresh_documents'], 'document')}, scanned exactly"),
    ]
    return table(rows)


def _coverage_line(facts: dict[str, Any]) -> str:
    read, total, n_missing = facts["tokens_read"], facts["tokens_total"], facts["documents"] - facts["encoded"]
    if n_missing:
        left = f"{n_missing:,} found by words alone, about {total - read:,} tokens to encode"
        return f"{counted(facts['encoded'], 'document')} encoded, {left}"
    return f"{'all' if read == total else f'{read / total:.2%} of'} {total:,} tokens read"


def _encoder_line(encoder: dict[str, Any] | None, index: Path) -> str:
    if encoder is None:
        return f"none, the index holds words alone; add vectors: {command_line('index', index)}"
    return f"{encoder['name']}, {encoder['width']} wide, fingerprint {encoder['fingerprint'][:12]}"


def _generation_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    if "partitions" not in facts:
        return [("generation", _generation_line(facts["generation"]))]
    of_parts = facts["partitions"]
    size = f"{len(of_parts):,}, each with its own generation"
    rows = [
        (f"  {part['folder']}", f"{counted(part['documents'], 'document')}; {_generation_line(part['generation'])}")
        for part in of_parts
    ]
    return [("partitions", size), *rows]


def _reference_line(row: dict[str, Any] | None) -> str:
    if row is None:
        return "none is pinned; one is drawn for each search until an index run ends"
    what = counted(row["n_documents"], "document") if row["n_documents"] else "words alone"
    return f"version {row['version']}, {what}, drawn from {row['n_corpus']:,}"


def _generation_line(row: dict[str, Any] | None) -> str:
    if row is None:
        return "none; all documents are scanned exactly"
    size = f"{counted(row['n_vectors'], 'vector')}, {megabytes(row['size_bytes'])}"
    if row["is_exact"]:
        return f"{row['factory']}, exact, {size}"
    return (
        f"{row['factory']}, nprobe {row['nprobe']}, {size}; document recall@10 {row['recall']:.3f} "
        f"measured over {row['recall_queries']} queries"
    )


def list_failures(index: Index, as_json: bool) -> list[Line]:
    """Sources that could not be indexed, and why."""
    failures = index.snapshot.failures()
    if as_json:
        return _json([{"source": source, "reason": reason} for source, reason in failures])
    return [line(Run(source, Style.TITLE), f": {reason}") for source, reason in failures] or [line("none")]


def list_citing(index: Index, doc_id: str, as_json: bool) -> list[Line]:
    """The documents that name a document, with the citing sentences."""
    documents = cited_by(index, doc_id)
    if as_json:
        rows = []
        for citing in documents:
            named = {"id": citing.document.doc_id, "title": citing.document.title, "source": citing.document.source}
            rows.append(named | {"citations": [_citation(citation) for citation in citing.citations]})
        return _json(rows)
    lines = []
    for citing in documents:
        lines.append(line(Run(citing.document.doc_id, Style.TITLE), f"  {citing.document.title}"))
        for citation in citing.citations:
            sentence = shortened(" ".join(citation.text.split()), _MAX_COLUMNS)
            lines.append(line(f"    {shortened(citation.heading, _MAX_HEADING_COLUMNS)}: {sentence}"))
    return lines or [line("no document names it")]


def _citation(citation: Citation) -> dict[str, Any]:
    values = {"name": citation.name, "section": citation.section, "heading": citation.heading}
    return values | {"start": citation.span.start, "end": citation.span.stop, "text": citation.text}


def list_documents(index: Index, as_json: bool) -> list[Line]:
    """Names and titles of all documents."""
    return _json(_named_documents(index)) if as_json else table(index.snapshot.titles())


def _named_documents(index: Index) -> list[dict[str, str]]:
    return [{"doc_id": doc_id, "title": title} for doc_id, title in index.snapshot.titles()]


def list_fields(index: Index, as_json: bool) -> list[Line]:
    """The metadata fields of all documents: type, how many documents have them, and examples."""
    fields = stored_fields(index.snapshot.folder)
    if as_json:
        return _json([asdict(field) for field in fields])
    if not fields:
        return [line("none: the documents have no metadata; filters can use doc_id, title and source")]
    rows = [
        (field.name, " or ".join(field.types), f"{field.n_documents:,}", _examples(field.types, field.examples))
        for field in fields
    ]
    return table(rows, head=("field", "type", "documents", "examples"))


def _examples(types: Sequence[str], examples: Sequence[Scalar]) -> str:
    if tuple(types) == ("number",) and len(examples) == 2:
        return f"{examples[0]} to {examples[1]}"
    shown = [
        f"'{shortened(example, _EXAMPLE_COLUMNS)}'" if isinstance(example, str) else value_text(example)
        for example in examples
    ]
    return ", ".join(shown)


def value_text(value: MetadataValue) -> str:
    """A metadata value as text; the elements of a list are separated by commas."""
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def describe_document(index: Index, doc_id: str, text: bool, as_json: bool) -> list[Line]:
    """One document: sections with offsets, metadata, coverage; its text on request."""
    position = index.position(doc_id)
    ((document, coverage),) = index.snapshot.documents(np.array([position]))
    n_chunks = len(index.snapshot.spans(position)) if index.snapshot.is_encoded(position) else 0
    if as_json:
        values = {name: getattr(document, name) for name in ("doc_id", "title", "source")}
        values |= {"metadata": dict(document.metadata)}
        values |= {name: getattr(coverage, name) for name in ("tokens_read", "tokens_total")}
        values["sections"] = outline(document)
        return _json(values | ({"text": document.text} if text else {}))
    if text:
        return [(Run(document.text),)]
    rows = [("title", document.title), ("source", document.source)]
    rows += [(key, shortened(value_text(value), _MAX_COLUMNS)) for key, value in document.metadata.items()]
    if document.pages:
        rows.append(("pages", f"{len(document.pages):,}"))
    if n_chunks:
        rows.append(("tokens", f"{coverage.tokens_read:,} of {coverage.tokens_total:,} read"))
        rows.append(("chunks", f"{n_chunks:,}"))
    else:
        rows.append(("tokens", f"about {coverage.tokens_total:,}, not encoded yet"))
    return [*table(rows), (), *_section_lines(document)]


def _section_lines(document: Document) -> list[Line]:
    lines = [line(Run(f"{'number':>6} {'start':>9} {'stop':>9}  section", Style.FAINT))]
    for place, section in enumerate(document.sections):
        offsets = Run(f"{place + 1:>6} {section.start:>9} {section.stop:>9}  ", Style.FAINT)
        joined = f"  [{section.n_merged} joined]" if section.n_merged > 1 else ""
        indent = "  " * max(0, len(section.path) - 1)
        lines.append(line(offsets, indent, section_label(document, place), joined))
    return lines


Passage: TypeAlias = dict[str, Any]  # section and heading, or page; start, end and text


def section_texts(document: Document, wanted: str) -> list[Passage]:
    """The section with a number, or the sections with a heading: a long section has several parts.

    A number is from 1. Of a heading, a part is enough, and case does not matter. A heading that is a number is found
    if no section has that number.
    """
    n = len(document.sections)
    if wanted.isdecimal() and 1 <= int(wanted) <= n:
        return [_passage(document, int(wanted) - 1)]
    headings = [section.heading for section in document.sections]
    folded = wanted.casefold().strip()
    places = [place for place, heading in enumerate(headings) if heading.casefold() == folded]
    places = places or [place for place, heading in enumerate(headings) if folded and folded in heading.casefold()]
    names = {headings[place] for place in places}
    if len(names) > 1:
        listed = ", ".join(f"{place + 1} {headings[place]!r}" for place in places[:_N_NAMED])
        more = ", …" if len(places) > _N_NAMED else ""
        raise QueryError(f"{len(names)} headings contain {wanted!r}: {listed}{more}; name one by its number")
    if not places:
        known = [heading for heading in headings if heading]
        similar = difflib.get_close_matches(wanted, known, _N_NAMED, cutoff=0.5)
        meant = " or ".join(map(repr, similar))
        hint = f"did you mean {meant}?" if similar else "list them: longmatch show INDEX DOC_ID"
        raise QueryError(f"no section {wanted!r} among {n} in {document.doc_id}; {hint}")
    return [_passage(document, place) for place in places]


def page_text(document: Document, page: int) -> Passage:
    """The text of a page, from 1."""
    starts = document.pages
    if not starts:
        raise QueryError(f"{document.doc_id} has no pages, as its format has none; show a section: --section N")
    if page > len(starts):
        raise QueryError(f"{document.doc_id} has no page {page}; name one from 1 to {len(starts)}")
    stop = starts[page] if page < len(starts) else len(document.text)
    return {"page": page} | _span(document, starts[page - 1], stop)


def passage_text(passages: Sequence[Passage], as_json: bool) -> str:
    """Passages one after another, as they are in the text, or as JSON."""
    return json_text(passages) if as_json else "".join(passage["text"] for passage in passages).rstrip("\n")


def _passage(document: Document, place: int) -> Passage:
    section = document.sections[place]
    named = {"section": place + 1, "heading": section_label(document, place)}
    return named | _span(document, section.start, section.stop)


def _span(document: Document, start: int, stop: int) -> Passage:
    return {"start": start, "end": stop, "text": document.text[start:stop]}


def _json(value: object) -> list[Line]:
    return [(Run(json_text(value)),)]


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

    with opened_index(index) as opened:
        if doc_id is None:
            views = [
                (documents, list_documents),
                (fields, list_fields),
                (failures, list_failures),
                (True, describe_index),
            ]
            show_lines(next(view for is_wanted, view in views if is_wanted)(opened, as_json))
        elif section is not None:
            echo_text(passage_text(section_texts(opened.document(doc_id), section), as_json))
        elif page is not None:
            echo_text(passage_text([page_text(opened.document(doc_id), page)], as_json))
        elif cited_by:
            show_lines(list_citing(opened, doc_id, as_json))
        else:
            show_lines(describe_document(opened, doc_id, text, as_json))


def _check_options(doc_id: str | None, *, of_index: dict[str, bool], of_document: dict[str, bool]) -> None:
    """Check that at most one view is wanted, of the index without DOC_ID and of the document with it."""
    chosen = [name for name, is_wanted in (of_index | of_document).items() if is_wanted]
    if len(chosen) > 1:
        raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other; give one of them")
    if doc_id is None and chosen and chosen[0] in of_document:
        raise click.UsageError(f"{chosen[0]} needs a DOC_ID; list all documents: longmatch show INDEX --documents")
    if doc_id is not None and chosen and chosen[0] in of_index:
        raise click.UsageError(f"{chosen[0]} shows all of INDEX; leave out DOC_ID")


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
    """Write documents, sections or vectors of INDEX to a Parquet file.

    \b
    Example:
        longmatch export papers.lm --what sections -o sections.parquet
    """
    if output is None or output.suffix.lower() != ".parquet":
        raise click.UsageError("name a file that ends in .parquet: -o documents.parquet")
    check_extra("pyarrow", "longmatch export", "pyarrow", "arrow")
    # Loads pyarrow, which no other command needs.
    from engine.report.arrow import index_export

    with opened_index(index) as opened:
        snapshot, chosen = opened.snapshot, opened.matching(where)
        table = index_export(snapshot, what, chosen)
        with opened_output(output) as file:
            n_rows = table.write(file)
        log(f"{counted(n_rows, 'row')}, {counted(len(chosen), 'document')}")
        n_missing = int(np.count_nonzero(~snapshot.has_vectors[chosen])) if what == "vectors" else 0
        if n_missing:
            log(f"{counted(n_missing, 'document')} without vectors; encode all: {command_line('index', index)}")


@click.command()
@existing_index_argument
@click.argument("document", required=False)
@click.option("--id", "doc_id", metavar="ID", help="Mark this document of INDEX as the query.")
@click.option(
    "-k", "k", default=5, show_default=True, type=click.IntRange(1), metavar="N", help="Number of hits on the map."
)
@click.option("--by", metavar="FIELD", help="Colour the map by this metadata field.")
@click.option("--where", metavar="FILTER", help="Metadata filter for the map; see longmatch query.")
@output_option
@reading_options
@device_option
def plot(
    index: Path,
    document: str | None,
    doc_id: str | None,
    k: int,
    by: str | None,
    where: str | None,
    output: Path | None,
    reading: Reading,
    device: str | None,
) -> None:
    """Draw a map of INDEX, with its documents as points.

    Similar documents are near each other, by their vectors. With a DOCUMENT (or --id),
    the query is a star, and its hits have their ranks. The file's name gives the
    format: .png or .svg.

    \b
    Example:
        longmatch plot papers.lm draft.pdf --by year -o map.svg
    """
    check_picture(output, "longmatch plot", "-o map.svg")
    assert output is not None, "the check refuses None"
    if document is not None and doc_id is not None:
        raise click.UsageError("DOCUMENT and --id exclude each other; give one of them")
    query = None if document is None else read_each([document], reading)[0]
    with opened_index(index, device) as opened:
        write_picture(output, _map(opened, doc_id if query is None else query, k, by, where))


def _map(index: Index, query: Document | str | None, k: int, by: str | None, where: str | None) -> Figure:
    # Loads matplotlib, which only pictures need.
    from engine.plots import corpus_map, plot_map

    if by is not None:
        check_key(index.snapshot, by)
    result = None if query is None else index.search(query, Request(k=k, where=where))
    return plot_map(index, corpus_map(index, query, where), result=result, by=by)
