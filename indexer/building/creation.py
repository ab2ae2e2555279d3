"""New index folders: the empty partitions of a new index, and folders into which nothing was ever committed.

Partitions are written beside their place and appear there by one rename, so that a run that was killed finds all or
none. A run that fails before its first commit leaves no folder behind.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from engine.errors import DocumentError, EngineError, IndexMismatch, QueryError
from engine.readers import Unreadable
from engine.store.catalog import ANN_FOLDER, CATALOG_FILE
from engine.store.checks import COMMITS_FILE
from engine.store.durable import appearing
from engine.store.manifest import (
    MANIFEST_FILE,
    MOST_PARTITIONS,
    Entry,
    Manifest,
    holds_index,
    index_folders,
    is_partitioned,
    partition_folder,
    read_manifest,
    write_manifest,
)
from engine.store.reference import REFERENCE_FOLDER
from engine.store.shards import SHARD_FOLDER
from engine.store.writable import LOCK_FILE
from engine.store.writer import Writer
from engine.text.document import Document
from engine.words.languages import check_language, detect_language
from indexer.building.pipeline import BATCH_CHARS, groups, n_chars
from indexer.building.report import BuildReport


@contextmanager
def without_stub(folder: Path) -> Iterator[None]:
    """Remove a folder that is made inside, if an error or Ctrl-C comes before the first commit."""
    is_new = is_free(folder)
    try:
        yield
    except BaseException:
        if is_new:
            remove_stub(folder)
        raise


def is_free(folder: Path) -> bool:
    """Whether a new index can be made here: no folder or an empty one."""
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def has_only_failures(report: BuildReport) -> bool:
    """Whether every document of a run failed, and there was one."""
    return bool(report.failures) and report.n_seen == len(report.failures)


def remove_stub(folder: Path) -> None:
    """Remove an index folder into which nothing was ever committed; any other folder stays.

    A folder that another process writes stays too, as do files that are not of an index.
    """
    with suppress(EngineError, OSError):
        folders = index_folders(folder)
        with ExitStack() as held:
            writers = [held.enter_context(Writer(path)) for path in folders]
            if any(writer.has_committed for writer in writers):
                return
            (folder / MANIFEST_FILE).unlink(missing_ok=True)
            for writer in writers:
                _remove_files(writer.folder)
        for path in dict.fromkeys([*folders, folder]):  # the folder of partitions last
            path.rmdir()


def _remove_files(folder: Path) -> None:
    """Remove the files of an index that holds nothing."""
    for file in folder.glob(f"{CATALOG_FILE}*"):
        file.unlink()
    for part in (SHARD_FOLDER, ANN_FOLDER, REFERENCE_FOLDER):
        shutil.rmtree(folder / part, ignore_errors=True)
    (folder / COMMITS_FILE).unlink()
    (folder / LOCK_FILE).unlink()


def check_number(n_partitions: int) -> None:
    """Raise `QueryError` if an index cannot have so many partitions."""
    if not 1 <= n_partitions <= MOST_PARTITIONS:
        raise QueryError(f"{n_partitions} partitions; there can be 1 to {MOST_PARTITIONS:,}")


def begin_partitions(
    place: Path,
    n_partitions: int,
    documents: Iterable[Document | Unreadable],
    language: str | None,
    first_run: Mapping[str, Any],
) -> Iterable[Document | Unreadable]:
    """Make the partitions of a new index; an existing index must have `n_partitions` partitions.

    Args:
        n_partitions: 1 is an index without partitions, which is not made here.
        language: of the word segmentation; by default detected in the first documents, as in one index.
        first_run: options of the run, for the one that goes on after a kill.

    Returns:
        The same documents; the first ones may have been read already.

    Raises:
        QueryError: the number is out of range, or there is no such language.
        IndexMismatch: the index that is there has another number of partitions, or the folder holds something else.
        DocumentError: there is no document to detect a language in.
        IndexBusy: another process makes the partitions.
    """
    check_number(n_partitions)
    if not is_free(place):
        _check_present(place, n_partitions)
        return documents
    if n_partitions == 1:
        return documents
    if language is not None:
        check_language(language)
    else:
        first, documents = begun(documents)
        if not first:
            raise DocumentError("there is no document; begin with one at least, or name the --language of the index")
        language = detect_language(one.text for one in first if isinstance(one, Document))
    with appearing(place) as folder:
        write_empty(folder, n_partitions, language, None, first_run)
    return documents


def _check_present(place: Path, n_partitions: int) -> None:
    """Check that an existing index has this number of partitions."""
    if not holds_index(place):
        raise IndexMismatch(f"{place} is not empty and holds no index; name a new folder or an index")
    n_present = len(read_manifest(place).partitions) if is_partitioned(place) else 1
    if n_present != n_partitions:
        what = f"has {n_present} partitions" if n_present > 1 else "is there already, and is not partitioned"
        raise IndexMismatch(
            f"{place} {what}, not {n_partitions}; leave --partitions out, or copy it into a new index of "
            f"{n_partitions} partitions: longmatch upkeep partition {place} OUT -p {n_partitions}"
        )


def begun(
    documents: Iterable[Document | Unreadable],
) -> tuple[list[Document | Unreadable], Iterable[Document | Unreadable]]:
    """The first batch, which decides on the language of an index, and all documents."""
    rest = iter(documents)
    first = next(groups(rest, n_chars, BATCH_CHARS), [])
    return first, chain(first, rest)


def write_empty(
    folder: Path,
    n_partitions: int,
    language: str,
    encoder: Mapping[str, Any] | None,
    first_run: Mapping[str, Any] | None = None,
) -> None:
    """Write partitions without documents, and their manifest.

    Args:
        encoder: `name`, `fingerprint` and `width`; None if the partitions are not bound to an encoder.
        first_run: options of the run that fills them; None where they are filled at once.
    """
    for number in range(n_partitions):
        with Writer(folder / partition_folder(number)) as writer:
            if first_run is not None and number == 0:
                writer.set_values({"first_run": dict(first_run)})
            writer.bind_partition(number, n_partitions, language)
            if encoder is not None:
                writer.claim(encoder)
    entries = tuple(Entry(partition_folder(number), 0, 0) for number in range(n_partitions))
    write_manifest(folder, Manifest(encoder, language, None, entries))
