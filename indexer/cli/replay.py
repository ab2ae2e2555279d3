"""`longmatch replay` and `longmatch diff`: repeat searches, and show the differences of their results."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.search.request import Request
from engine.text.cleaning import json_text
from engine.text.document import Document
from indexer.cli.options import (
    FAILED,
    Queries,
    Reading,
    device_option,
    json_option,
    missing_files,
    opened_index,
    opened_reader,
    read_named,
    reading_options,
    request_options,
)
from indexer.cli.terminal import echo_text, log

if TYPE_CHECKING:
    from engine.index import Index
    from engine.replay import Differences, Presence

_LINE = re.compile(r":\d+$")  # line number of a document in a file of JSON lines
_INDEX = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@click.option("--index", "index", type=_INDEX, metavar="INDEX", help="By default the folder recorded in FILE.")
@click.option("--query", "document", metavar="DOCUMENT", help="By default the file, text or id that FILE names.")
@click.option(
    "--log",
    "log_file",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="LOG",
    help="Check first that this log has a line of each result, and that its lines are unchanged.",
)
@json_option
@reading_options
@device_option
def replay(
    file: Path,
    index: Path | None,
    document: str | None,
    log_file: Path | None,
    as_json: bool,
    reading: Reading,
    device: str | None,
) -> None:
    """Repeat the searches of a result FILE (JSON or JSON lines) and compare.

    Prints "equal", or which hits differ, which section pairs caused it, and what
    else changed: query, encoder, documents, generation, reference, parameters.
    Exit status 1 where a result differs.

    \b
    Example:
        longmatch query papers.lm draft.pdf --format json -o result.json
        longmatch replay result.json
    """
    from engine.replay import as_written, check_replayable, recorded_results, replay

    recorded = recorded_results(file)
    with as_written():
        for record in recorded:
            check_replayable(record)
        if log_file is not None:
            _check_log(log_file, recorded)
        searches = [(index or _folder(record), record, _query(record, document, reading)) for record in recorded]
    differences: list[Differences] = []
    for folder, of_index in groupby(searches, lambda search: search[0]):
        with opened_index(folder, device) as opened:
            differences += [replay(opened, record, query) for _, record, query in of_index]
    _print(differences, as_json)
    if not all(difference.is_equal for difference in differences):
        sys.exit(FAILED)


def _check_log(path: Path, recorded: Sequence[Mapping[str, Any]]) -> None:
    """Name the line of each result on standard error."""
    from indexer.searches import line_of, read_log

    entries = read_log(path)
    for record in recorded:
        title, time = record["query"]["title"], record["provenance"]["time"]
        if (number := line_of(entries, record)) is None:
            raise click.ClickException(f"{path} has no line with the result of {title!r} at {time}")
        log(f"{path}: line {number} is the search of {title!r} at {time}")


def _folder(recorded: Mapping[str, Any]) -> Path:
    folder = Path(recorded["provenance"]["index"]["path"])
    if not folder.is_dir():
        raise click.ClickException(f"the index {folder} of the result is not there; name it: --index INDEX")
    return folder


def _query(recorded: Mapping[str, Any], name: str | None, reading: Reading) -> Document | None:
    """The query document of a recorded search; None for a document of the index."""
    from engine.replay import kept_query

    if name is None and recorded["provenance"]["is_indexed"]:
        return None
    if name is None and (document := kept_query(recorded)) is not None:
        return document
    query = recorded["query"]
    source = name or query["source"]
    if not Path(source).exists():
        source = _LINE.sub("", source)
    if missing := missing_files([source]):
        raise click.ClickException(f"the query {source}: {missing[0].reason}; name its file: --query DOCUMENT")
    with opened_reader([source], reading) as reader:
        read = [candidate for candidate in read_named([source], reader, None) if isinstance(candidate, Document)]
    named = [candidate for candidate in read if candidate.doc_id == query["id"]] or read
    if not named:
        raise click.ClickException(f"the query {source} cannot be read; name its file: --query DOCUMENT")
    return named[0]


@click.command()
@click.argument("before", type=_INDEX, metavar="INDEX1")
@click.argument("after", type=_INDEX, metavar="INDEX2")
@click.argument("documents", nargs=-1, metavar="[PATH]...")
@click.option("--queries", "queries", multiple=True, metavar="PATH", help="Documents to search with; more may follow.")
@click.option(
    "--id", "doc_ids", multiple=True, metavar="ID", help="Search with this document of both; may be repeated."
)
@request_options("k", "exact", "mode", "skip", "weights")
@json_option
@reading_options
@device_option
def diff(
    before: Path,
    after: Path,
    documents: tuple[str, ...],
    queries: tuple[str, ...],
    doc_ids: tuple[str, ...],
    request: Request,
    as_json: bool,
    reading: Reading,
    device: str | None,
) -> None:
    """Search two indexes with the same documents; show which hits moved, and which sections caused it.

    A document of the same content as the query is left out of both.

    \b
    Example:
        longmatch diff old.lm new.lm --queries draft.pdf patents/*.xml -k 20
    """
    names = [*queries, *documents]
    if not names and not doc_ids:
        raise click.UsageError("no query: name documents, as --queries draft.pdf, or --id DOC_ID")
    named = Queries(reading, names, doc_ids)
    with (
        opened_reader(named.files, reading) as reader,
        opened_index(before, device) as old,
        opened_index(after, device) as new,
    ):
        differences = [_difference(old, new, query, request) for query in named.read(reader)]
    _print(differences, as_json)
    named.end(are_answered=bool(differences))


def _difference(old: Index, new: Index, query: Document | str, request: Request) -> Differences:
    from engine.replay import compare_results

    before, after = (index.search(query, request).to_dict(n_pairs=None) for index in (old, new))
    return compare_results(before, after, was_there=_holds(old), is_there=_holds(new))


def _holds(index: Index) -> Presence:
    return lambda doc_id: index.snapshot.position(doc_id) is not None


def _print(differences: Sequence[Differences], as_json: bool) -> None:
    from engine.replay import differences_text

    if as_json:
        rows = [{"is_equal": difference.is_equal, **asdict(difference)} for difference in differences]
        echo_text(json_text(rows, indent=1))
        return
    for difference in differences:
        echo_text(differences_text(difference))
