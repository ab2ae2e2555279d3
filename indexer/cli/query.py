"""`longmatch query` ranks an index against documents; `longmatch watch` prints hits that are new since its last run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.search.request import AUTO, STANDING, Explain, Mode, Request
from indexer.cli.options import (
    Queries,
    Reading,
    as_option,
    collected,
    existing_index_argument,
    left_out_note,
    only_document,
    opened_index,
    opened_reader,
    placed_partitions,
    ray_option,
    read_named,
    request_options,
    search_device_option,
)
from indexer.cli.output import (
    Output,
    file_options,
    format_option,
    log_option,
    pairs_option,
    written_option,
)
from indexer.cli.terminal import log, waiting

if TYPE_CHECKING:
    from engine.index import Index
    from engine.text.document import Document
    from indexer.cli.formats import Answer
    from indexer.reading.reader import DocumentReader

_OF_NOVELTY = ("table", "json", "jsonl", "csv", "html")  # formats that show the novelty of sections
_OF_MODELS = ("table", "json", "jsonl", "html")  # formats that show the explanation of the model
_OF_JOINT = ("table", "json", "jsonl")  # formats that show several documents as one query


@dataclass(frozen=True, slots=True)
class _Named:
    """The documents of a search, as they were named."""

    documents: tuple[str, ...]
    doc_ids: tuple[str, ...]
    texts: tuple[str, ...]
    unlike: tuple[str, ...]
    together: bool

    @property
    def is_joint(self) -> bool:
        """Whether all documents are one query."""
        return self.together or bool(self.unlike)


@click.command()
@existing_index_argument
@click.argument("documents", nargs=-1, metavar="[DOCUMENT]...")
@click.option(
    "--id", "doc_ids", multiple=True, metavar="ID", help="Use this document of INDEX as the query; may be repeated."
)
@click.option("--text", "texts", multiple=True, help="Use this text as the query; may be repeated.")
@click.option(
    "--not", "unlike", multiple=True, metavar="NAME", help="Less like this: a document of INDEX, or a file; repeatable."
)
@click.option("--together", is_flag=True, help="Use all documents as one query; so does --not.")
@as_option
@request_options()
@ray_option("Search partitions as actors of")
@pairs_option(None, "3, in HTML 10; of novelty 1, in HTML 3")
@format_option(["table", "json", "jsonl", "csv", "trec", "html", "bibtex", "ris"])
@file_options
@log_option
@search_device_option
@collected(shown=Output, named=_Named)
def query(
    index: Path,
    named: _Named,
    request: Request,
    ray_address: str | None,
    shown: Output,
    log_file: Path | None,
    reading: Reading,
    device: str | None,
) -> None:
    """Find the documents of INDEX that match a DOCUMENT, and show why.

    '-' is standard input. Each DOCUMENT, and each line of a .jsonl file, is a
    separate query, except with --together. A document of INDEX with the same content
    as the query is left out of its hits and named on standard error.

    \b
    Example:
        longmatch query papers.lm draft.pdf -k 5 --sections 2
        longmatch query papers.lm draft.pdf --mode novelty
        longmatch query papers.lm draft.pdf --id smith2019 --not jones2001
    """
    _check_use(named, request, shown)
    queries = Queries(reading, named.documents, named.doc_ids, named.texts)
    answers: list[Answer] = []
    if queries:
        with (
            opened_reader([*queries.files, *named.unlike], reading) as reader,
            placed_partitions(index, ray_address) as placement,
            opened_index(index, device, placement=placement) as opened,
        ):
            if log_file is not None:
                from indexer.searches import SearchLog

                opened.record = SearchLog(log_file).add
            if named.is_joint:
                like = [*queries.read(reader)]
                if not queries.failed:
                    unlike = [_unlike(opened, name, reader) for name in named.unlike]
                    from indexer.cli.formats import print_joint  # a usage error loads no report

                    together = opened.search_together(like, unlike, request)
                    if together.copies:
                        log(left_out_note(together.results[0].query, together.copies))
                    print_joint(together, shown)
            else:
                with waiting("searching"):
                    answers = [_answer(opened, query, request) for query in queries.read(reader)]
    if answers:
        from indexer.cli.formats import no_hits_notes, print_answers

        if shown.form != "table":
            for note in no_hits_notes(answers):
                log(note)
        print_answers(answers, shown)
    queries.end(are_answered=bool(answers))


def _unlike(index: Index, name: str, reader: DocumentReader | None) -> Document | str:
    """A document of the index, or the only one of a file."""
    if index.snapshot.position(name) is not None:
        return name
    if not Path(name).is_file():
        raise click.ClickException(f"--not {name}: neither a document of {index.snapshot.folder} nor a file")
    return only_document(name, list(read_named([name], reader, None)))


def _check_use(names: _Named, request: Request, shown: Output) -> None:
    form, texts = shown.form, names.texts
    if not any((names.documents, names.doc_ids, texts)):
        raise click.UsageError("no query: name a DOCUMENT, '-' for standard input, --id DOC_ID or --text TEXT")
    if not all(map(str.strip, texts)):
        raise click.UsageError("--text is empty; give it some words")
    if names.is_joint and form not in _OF_JOINT:
        use = ", ".join(_OF_JOINT)
        raise click.UsageError(f"--format {form} is for one document; with --together or --not use: {use}")
    if request.mode is Mode.NOVELTY and form not in _OF_NOVELTY:
        raise click.UsageError(f"--format {form} shows no novelty; use one of: {', '.join(_OF_NOVELTY)}")
    if request.explain is Explain.MODEL and form not in _OF_MODELS:
        raise click.UsageError(f"--format {form} shows no --explain model; use one of: {', '.join(_OF_MODELS)}")


def _answer(index: Index, query: Document | str, request: Request) -> Answer:
    """The answer to one query; a line on standard error names the copies of the query that are left out of it."""
    from indexer.cli.formats import Answer  # a usage error loads no report

    result = index.search(query, request)
    if result.copies:
        log(left_out_note(result.query, result.copies))
    return Answer(result)


NOTHING_NEW = 4  # exit status


@click.command()
@existing_index_argument
@click.argument("documents", nargs=-1, metavar="[DOCUMENT]...")
@click.option("--id", "doc_ids", multiple=True, metavar="ID", help="Watch for this document of INDEX; repeatable.")
@click.option("--text", "texts", multiple=True, help="Watch for this text; may be repeated.")
@written_option("--state", required=True, help="Holds what was printed; made by the first run.")
@as_option
@request_options("k", "where", "before", "without", "skip", "weights", "least", "exact", "candidates", **STANDING)
@pairs_option(None, "3, in HTML 10")
@format_option(["table", "jsonl", "html"])
@file_options
@search_device_option
@collected(shown=Output)
def watch(
    index: Path,
    documents: tuple[str, ...],
    doc_ids: tuple[str, ...],
    texts: tuple[str, ...],
    state: Path,
    request: Request,
    shown: Output,
    reading: Reading,
    device: str | None,
) -> None:
    """Print hits of each DOCUMENT that no earlier run printed, or that changed since.

    Hits are documents that score higher than unrelated documents do (--least auto).
    The first run prints all of them. Where nothing is new, nothing is printed.

    Exit status: 0 hits were printed, 4 nothing is new, 1 error, 2 wrong usage,
    3 done but a DOCUMENT could not be read.

    \b
    Example:
        longmatch watch papers.lm draft.pdf --state draft.watch.json
    """
    if not documents and not doc_ids and not texts:
        raise click.UsageError("no query: name a DOCUMENT, --id DOC_ID or --text TEXT")
    queries = Queries(reading, documents, doc_ids, texts)
    with opened_reader(queries.files, reading) as reader, opened_index(index, device) as opened:
        # Loads the store, which a usage error does not need.
        from indexer.cli.formats import Answer, print_answers
        from indexer.searches import Watch

        watched = Watch(state, index)
        results = [watched.search(opened, query, request) for query in queries.read(reader)]
        if any(result.floor is None for result, _ in results) and request.least == AUTO:
            log("scores of unrelated documents are not known yet, so every hit counts; --least X sets a limit")
        answers = [Answer(result, changed=changed) for result, changed in results if result.hits]
        if not results:
            queries.end(are_answered=False)
        with watched.saved():
            if answers:
                print_answers(answers, shown)
                sys.stdout.flush()
    queries.end(are_answered=bool(results))
    sys.exit(0 if answers else NOTHING_NEW)
