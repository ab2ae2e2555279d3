"""`longmatch compare`, `chart` and `pairs`: two documents, a document and its hits, all pairs that overlap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import QueryError
from engine.report.contract import envelope, result_dict
from engine.report.exports import csv_text
from engine.report.lines import counted
from engine.result import CLUSTER_COLUMNS, PAIR_COLUMNS, cluster_rows
from engine.search.request import AUTO, Mode, Request, parameters
from engine.text.cleaning import json_text
from indexer.cli.options import (
    FOLDER,
    Reading,
    as_option,
    collected,
    device_option,
    existing_index_argument,
    opened_index,
    read_each,
    request_options,
    typed_command,
)
from indexer.cli.output import (
    Output,
    emit,
    emit_lines,
    file_options,
    format_option,
    named_form,
    output_option,
    pairs_option,
    write_output,
    written_option,
)
from indexer.cli.terminal import PairsProgress, log, waiting

if TYPE_CHECKING:
    from engine.index import Index
    from engine.report.chart import Chart
    from engine.result import Result
    from engine.text.document import Document


@click.command()
@click.argument("documents", nargs=-1, required=True, metavar="A [B]")
@click.option("--index", type=FOLDER, metavar="INDEX", help="Use the thresholds and word statistics of INDEX.")
@click.option("--id", "doc_id", metavar="ID", help="Compare A with this document of INDEX instead of B.")
@as_option
@click.option("--encoder", metavar="NAME", help="Encoder, without --index; by default longmatch-minilm (bundled).")
@request_options("skip", "weights")
@pairs_option(10)
@click.option(
    "--changes", is_flag=True, help="Show which words changed from A to B, section by section, in place of parts."
)
@format_option(["table", "json", "html"])
@file_options
@device_option
@collected(shown=Output)
def compare(
    documents: tuple[str, ...],
    index: Path | None,
    doc_id: str | None,
    encoder: str | None,
    request: Request,
    shown: Output,
    reading: Reading,
    device: str | None,
) -> None:
    """Show which sections of document A match which sections of document B.

    The parts sum to the score of B for the query A. Without --index there are no
    thresholds, so the score is high for any two texts. With --index it is the
    score that a search of INDEX with A would give to B. '-' is standard input.

    \b
    Example:
        longmatch compare draft.pdf paper.pdf
        longmatch compare old.docx new.docx --changes
        longmatch compare draft.pdf --index papers.lm --id smith2020.pdf
        longmatch compare mine.xml theirs.xml --weight claims=3,abstract=0
    """
    _check_use(documents, index, doc_id, encoder)
    read = read_each(documents, reading)
    # Imported here, so that a usage error does not load the encoder.
    from engine.comparison import compare_alone

    with waiting("comparing"):
        if index is None:
            result = compare_alone(read[0], read[1], encoder, request, device=device)
        else:
            with opened_index(index, device) as opened:
                result = opened.compare(read[0], doc_id if doc_id is not None else read[1], request)
    if shown.changes:
        _print_changes(result, shown)
        return
    from indexer.cli.formats import (
        Answer,
        print_answers,  # a usage error loads no report
    )

    print_answers([Answer(result)], shown)


def _check_use(documents: tuple[str, ...], index: Path | None, doc_id: str | None, encoder: str | None) -> None:
    if doc_id is not None and index is None:
        raise click.UsageError("--id needs --index, which holds the document")
    if encoder is not None and index is not None:
        raise click.UsageError("--encoder and --index exclude each other: an index has its own encoder")
    wanted = 1 if doc_id is not None else 2
    if len(documents) != wanted:
        use = "A --index INDEX --id ID" if wanted == 1 else "A B, or A --index INDEX --id ID"
        named = "one document is" if len(documents) == 1 else f"{len(documents)} documents are"
        raise click.UsageError(f"{named} named; use: longmatch compare {use}")


def _print_changes(result: Result, shown: Output) -> None:
    from engine.report.changes import changes_dict, changes_html, changes_lines, changes_of

    changes = changes_of(result)
    if shown.form == "table":
        emit_lines(lambda width: changes_lines(changes, width=width), shown.output)
    elif shown.form == "json":
        values = result_dict(result, n_pairs=shown.n_pairs) | {"changes": changes_dict(changes)}
        emit(json_text(envelope([values]), indent=1) + "\n", shown.output)
    else:
        emit(changes_html(changes, command=typed_command()), shown.output)


# `--least` of a chart is about its cells.
_SEARCH = [
    parameter.name for parameter in parameters() if parameter.name != "least" and not parameter.about.is_constant
]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The settings of a chart."""

    by: str
    least: float | None
    request: Request


def _checked_least(_context: click.Context, _parameter: click.Parameter, value: str) -> float | None:
    """A number, or None for the floor of the index."""
    try:
        least = Request(least=value).least
    except QueryError as error:
        raise click.BadParameter(str(error)) from error
    return None if least == AUTO else float(least or 0)


@click.command()
@existing_index_argument
@click.argument("document", required=False)
@click.option("--id", "doc_id", metavar="ID", help="Chart this document of INDEX, in place of a DOCUMENT.")
@as_option
@click.option(
    "--by",
    type=click.Choice(["section", "sentence", "claim", "element"]),
    default="section",
    show_default=True,
    help="A row is a section, a sentence, a numbered claim, or an element of a claim of the document.",
)
@click.option(
    "--least",
    default=AUTO,
    show_default=True,
    callback=_checked_least,
    metavar="X",
    help="Leave a cell empty that adds less than X to the score; auto: less than what stands out in INDEX.",
)
@request_options(*_SEARCH, k=5)
@format_option(["html", "csv", "docx"])
@file_options
@device_option
@collected(wanted=_Wanted, shown=Output)
def chart(
    index: Path,
    document: str | None,
    doc_id: str | None,
    wanted: _Wanted,
    shown: Output,
    reading: Reading,
    device: str | None,
) -> None:
    """Chart a DOCUMENT: a row for each part of it, a column for each hit in INDEX.

    A cell holds the best passage of the hit, its page or paragraph, what the row
    adds to the score and the matched words. It is empty where the row does not
    stand out from what unrelated documents of INDEX add. Sentences, claims and
    elements are encoded one by one, so scores differ from those of query.

    \b
    Example:
        longmatch chart papers.lm patent.xml --by claim -k 3 -o chart.docx
    """
    if (document is None) == (doc_id is None):
        raise click.UsageError("name one query: a DOCUMENT, '-' for standard input, or --id DOC_ID")
    if wanted.request.mode is Mode.NOVELTY:
        raise click.UsageError("a chart has documents as columns; use --mode similar or containment")
    read = None if document is None else read_each([document], reading)[0]
    with opened_index(index, device) as opened:
        with waiting("searching"):
            chart = _chart(opened, read, doc_id, wanted)
        _write(chart, wanted.by, shown.form, shown.output)


def _chart(index: Index, read: Document | None, doc_id: str | None, wanted: _Wanted) -> Chart:
    from engine.report.chart import SECTION_CHARACTERS, claim_chart
    from engine.text.units import Unit, divide_by

    document = index.document(doc_id) if doc_id is not None else read
    assert document is not None, "the command has one of the two"
    unit = Unit(wanted.by)
    divided = divide_by(document, unit)
    if unit is Unit.SECTION:
        result = index.search(doc_id or document, wanted.request)
        return claim_chart(result, divided.rows, least=wanted.least, most_characters=SECTION_CHARACTERS)
    copies = () if wanted.request.with_itself else index.copies(document)
    result = index.search(divided.document, wanted.request.leaving_out(*copies))
    return claim_chart(result, divided.rows, least=wanted.least)


def _write(chart: Chart, by: str, form: str, output: Path | None) -> None:
    from engine.report.chart import chart_csv, chart_docx, chart_html
    from engine.text.units import Unit

    if form == "csv":
        emit(chart_csv(chart), output)
    else:
        draw = chart_docx if form == "docx" else chart_html
        emit(draw(chart, Unit(by), command=typed_command()), output)


@click.command()
@existing_index_argument
@click.option(
    "--least",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True),
    metavar="X",
    help="List pairs with a score of at least X.",
)
@click.option(
    "--top",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Number of targets of each document that can make a pair.",
)
@click.option(
    "--mode",
    type=click.Choice(["similar", "containment"]),
    default="similar",
    show_default=True,
    help="What the score measures: similar, or containment (how much of one document the other contains).",
)
@click.option("--where", metavar="FILTER", help="Metadata filter for both documents, as in query.")
@written_option("--clusters", help="Also write the clusters that the pairs form, as CSV.")
@click.option(
    "--cluster-least",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Score of a pair that connects a cluster; by default that of --least.",
)
@output_option
@device_option
def pairs(
    index: Path,
    clusters: Path | None,
    cluster_least: float | None,
    output: Path | None,
    device: str | None,
    **values: Any,  # noqa: ANN401
) -> None:
    """List pairs of documents of INDEX that overlap, best first.

    A pair is listed if one of the two is among the best targets of the other. Its
    score is the larger of two scores: forward, with the first document as the query,
    and backward, with the second. The output is CSV.

    \b
    Example:
        longmatch pairs papers.lm --least 0.6 -o pairs.csv --clusters clusters.csv
        longmatch pairs papers.lm --mode containment --least 0.8 -o inside.csv
    """
    for file in (output, clusters):
        named_form(file, ["csv"])
    if cluster_least is not None and (clusters is None or cluster_least < values["least"]):
        raise click.UsageError("--cluster-least needs --clusters, and a score of at least --least")
    from indexer.pairs import PairSettings, find_pairs

    with opened_index(index, device) as opened:
        listed = find_pairs(opened, PairSettings(**values), progress=PairsProgress(), log=log)
    emit(csv_text([PAIR_COLUMNS, *listed.rows()]), output)
    status = "certified" if listed.is_certified else "estimated"
    by = ", by words alone" if listed.by_words else ""
    line = f"{counted(len(listed), 'pair')} among {counted(listed.n_documents, 'document')}, {status}{by}"
    if clusters is not None:
        made = listed.clusters(cluster_least)
        write_output(clusters, csv_text([CLUSTER_COLUMNS, *cluster_rows(made)]))
        line += f"; {counted(len(made), 'cluster')} of {sum(len(cluster.members) for cluster in made):,} documents"
    log(f"{line}; {listed.seconds:.1f} s")
