"""Writes documents into an index folder, shows progress in terminals and notebooks, and reports failures."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.store.checks import content_hash
from engine.store.partitioned import stored_hashes
from engine.text.cleaning import safe
from engine.text.document import Document
from longmatch.sources import Stream

if TYPE_CHECKING:
    from indexer.building.builder import Settings
    from indexer.building.report import BuildReport, Progress

_AT_ONCE = 64  # documents looked up in the catalog together


def write(folder: Path, stream: Stream, settings: Settings, progress: bool | Progress | None) -> BuildReport:
    """Index a stream of documents; a folder that this call made is removed if nothing could be committed.

    The report lists documents that cannot be indexed.

    Raises:
        DocumentError: no document could be indexed; the index is unchanged.
        EngineError: see `indexer.building.builder.build`.
    """
    # Load SQLAlchemy, which a search does not need.
    from indexer.building.builder import build, has_only_failures, is_free, without_stub

    if is_free(folder) and settings.encode == "none":
        stream.documents = _from_first_word(stream.documents)
    with without_stub(folder), listening(progress, stream.n_expected) as (listener, log):
        report = build(
            folder, stream.documents, settings, replace_files=stream.replace_files, progress=listener, log=log
        )
        if has_only_failures(report):
            raise _nothing_indexed(report.failures)
        repeated = f", {stream.n_repeated:,} repeated texts left out" if stream.n_repeated else ""
        log(
            f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
            f"{report.n_removed:,} removed, {len(report.failures):,} failed{repeated}"
        )
    return report


def warn_of_failures(report: BuildReport, stacklevel: int = 3) -> None:
    """Warn about documents that could not be indexed; by default at the line that called the calling function."""
    if report.failures:
        first = report.failures[0]
        warnings.warn(
            f"{len(report.failures):,} of {report.n_seen:,} documents could not be indexed, see report.failures; "
            f"the first: {first.source}: {first.reason}",
            stacklevel=stacklevel,
        )


def changes_only(stream: Stream, folder: Path, *, are_present: bool) -> Stream:
    """The same stream with a failure for each document that is not a change of the kind that is wanted.

    Either all doc_ids must be in the index, and files may replace files of the same doc_id; or no document may replace
    one of another content.
    """
    stream.replace_files = are_present
    stream.documents = _changes(stream.documents, folder, are_present=are_present)
    return stream


def _changes(
    documents: Iterable[Document | Unreadable], folder: Path, *, are_present: bool
) -> Iterator[Document | Unreadable]:
    rest = iter(documents)
    while group := list(islice(rest, _AT_ONCE)):
        known = stored_hashes(folder, [member.doc_id for member in group if isinstance(member, Document)])
        for member in group:
            if isinstance(member, Unreadable):
                yield member
            elif are_present and member.doc_id not in known:
                yield _refused(member, f"doc_id {member.doc_id!r} is not in the index; add it: index.add(...)")
            elif not are_present and known.get(member.doc_id) not in (None, content_hash(member)):
                reason = f"doc_id {member.doc_id!r} is in the index with another content; replace it: index.update(...)"
                yield _refused(member, reason)
            else:
                yield member


def _refused(document: Document, reason: str) -> Unreadable:
    return Unreadable(document.source or document.doc_id, reason, document.doc_id)


def _nothing_indexed(failures: Sequence[Unreadable]) -> DocumentError:
    first = failures[0]
    return DocumentError(
        f"none of {len(failures):,} documents could be indexed; the first: {first.source}: {first.reason}"
    )


def _from_first_word(documents: Iterator[Document | Unreadable]) -> Iterator[Document | Unreadable]:
    """The same documents, once one with a word was read: an index of words alone cannot be opened without a word."""
    waiting: list[Document | Unreadable] = []
    for document in documents:
        waiting.append(document)
        if isinstance(document, Document) and any(character.isalnum() for character in document.text):
            return chain(waiting, documents)
    failures = [item if isinstance(item, Unreadable) else _refused(item, "it holds no word") for item in waiting]
    raise _nothing_indexed(failures) if failures else DocumentError("there is no document; begin with at least one")


def is_shown(progress: bool | None) -> bool:
    """The choice of the user; by default, whether standard error is a terminal or this is a notebook."""
    return (sys.stderr.isatty() or _is_notebook()) if progress is None else progress


def progress_log(progress: bool | None) -> Callable[[str], None]:
    """A function that prints a line on standard error if progress is shown, and otherwise does nothing."""
    return _print if is_shown(progress) else _ignore


@contextmanager
def listening(
    progress: bool | Progress | None, n_expected: int | None
) -> Iterator[tuple[Progress | None, Callable[[str], None]]]:
    """Functions for the progress and the log lines of a build: on standard error, of the user, or for nobody.

    Args:
        progress: True, False, None for the default of `is_shown`, or a function that is called after each commit.
        n_expected: number of documents, if known.
    """
    if callable(progress):
        yield progress, _ignore
    elif not is_shown(progress):
        yield None, _ignore
    else:
        # Imports the command line, which a quiet run does not need.
        from indexer.cli.terminal import BuildProgress

        with BuildProgress(n_expected) as bar:
            yield bar, bar.log


def _is_notebook() -> bool:
    """Whether this process is the kernel of a notebook; does not import IPython to find out."""
    shell = sys.modules.get("IPython")
    session = shell.get_ipython() if shell is not None else None
    return getattr(session, "kernel", None) is not None


def _print(line: str) -> None:
    sys.stderr.write(safe(line) + "\n")
    sys.stderr.flush()


def _ignore(_: str) -> None:
    pass
