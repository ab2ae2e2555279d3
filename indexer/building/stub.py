"""Index folders into which nothing was ever committed: a run that fails leaves none behind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from engine.errors import EngineError
from engine.store.ann import ANN_FOLDER
from engine.store.catalog import CATALOG_FILE
from engine.store.manifest import MANIFEST_FILE, index_folders
from engine.store.reference import REFERENCE_FOLDER
from engine.store.shards import SHARD_FOLDER
from engine.store.writable import LOCK_FILE
from engine.store.writer import Writer
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
            if any(map(_has_committed, writers)):
                return
            (folder / MANIFEST_FILE).unlink(missing_ok=True)
            for writer in writers:
                _remove_files(writer.folder)
        for path in dict.fromkeys([*folders, folder]):  # the folder of partitions last
            path.rmdir()


def _has_committed(writer: Writer) -> bool:
    """Whether a document was ever committed; the counter starts at 1, also in empty partitions."""
    return bool(writer.meta.get("counters", {}).get("document", 1) > 1)


def _remove_files(folder: Path) -> None:
    """Remove the files of an index that holds nothing."""
    for file in folder.glob(f"{CATALOG_FILE}*"):
        file.unlink()
    for part in (SHARD_FOLDER, ANN_FOLDER, REFERENCE_FOLDER):
        shutil.rmtree(folder / part, ignore_errors=True)
    (folder / LOCK_FILE).unlink()
