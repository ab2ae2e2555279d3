"""`longmatch watch`: print the hits of standing questions that are new since the last run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from engine.search.request import AUTO, STANDING, Request
from indexer.cli.options import (
    collected,
    existing_index_argument,
    opened_index,
    request_options,
    search_device_option,
)
from indexer.cli.output_file import Shown, checked_output, file_options, format_option, pairs_option
from indexer.cli.reading import Queries, Reading, as_option, opened_reader
from indexer.cli.terminal import log

NOTHING_NEW = 4  # exit status


@click.command()
@existing_index_argument
@click.argument("documents", nargs=-1, metavar="[DOCUMENT]...")
@click.option("--id", "doc_ids", multiple=True, metavar="ID", help="Watch for this document of INDEX; repeatable.")
@click.option("--text", "texts", multiple=True, help="Watch for this text; may be repeated.")
@click.option(
    "--state",
    required=True,
    type=click.Path(path_type=Path),
    callback=checked_output,
    metavar="FILE",
    help="Holds what was printed; made by the first run.",
)
@as_option
@request_options("k", "where", "before", "without", "skip", "weights", "least", "exact", "candidates", **STANDING)
@pairs_option(None, "3, in HTML 10")
@format_option(["table", "jsonl", "html"])
@file_options
@search_device_option
@collected(shown=Shown)
def watch(
    index: Path,
    documents: tuple[str, ...],
    doc_ids: tuple[str, ...],
    texts: tuple[str, ...],
    state: Path,
    request: Request,
    shown: Shown,
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
        from indexer.cli.output import Answer, print_answers
        from indexer.watching import Watch

        watched = Watch(state, index)
        found = [watched.search(opened, query, request) for query in queries.read(reader)]
        if any(result.floor is None for result, _ in found) and request.least == AUTO:
            log("scores of unrelated documents are not known yet, so every hit counts; --least X sets a limit")
        answers = [Answer(result, changed=changed) for result, changed in found if result.hits]
        with watched.saved():
            if answers:
                print_answers(answers, shown)
                sys.stdout.flush()
    queries.end(are_answered=bool(found))
    sys.exit(0 if answers else NOTHING_NEW)
