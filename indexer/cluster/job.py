"""An indexing run on a Ray cluster: words here, vectors by encoders anywhere and one writer for each partition.

    1. This process reads the documents and commits their words, as `longmatch index --encode none` does.
    2. A writer for each partition, on this machine, sends documents without vectors to encoders and commits the
       vectors. Batches of a partition are cut and committed in a fixed order, so vectors do not depend on kills.
    3. This process pins the reference; then the writers publish the FAISS indexes, several at the same time.

Committed documents survive every failure: a dead encoder's batch is encoded again, a dead writer is started again, and
a run whose own process died continues with the same command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from engine.errors import IndexMismatch, named_faults
from engine.readers import Unreadable
from engine.store.manifest import index_folders
from engine.store.partition_writers import open_writers
from engine.store.partitioned import open_snapshot
from engine.text.document import Document
from indexer.building.builder import Settings, bind_encoder, build
from indexer.building.report import Activity, BuildReport, Progress
from indexer.cluster.encoders import EncoderSettings
from indexer.cluster.session import Cluster
from indexer.cluster.writers import BATCH_CHARS, Commit, Home
from indexer.generation.reference import refresh_reference


@named_faults
def build_on_cluster(
    path: str | Path,
    documents: Iterable[Document | Unreadable],
    cluster: Cluster,
    settings: Settings,
    *,
    n_workers: int | None = None,
    batch_chars: int = BATCH_CHARS,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> BuildReport:
    """Create or update an index with vectors of all documents, which are encoded on a cluster.

    A changed document is encoded whole, since its words are committed first and replace the stored version together
    with its vectors.

    Every partition is a folder of this machine, which belongs to the cluster.

    Raises:
        ClusterError: a process of the cluster died repeatedly.
        EngineError: as in `indexer.build`.
    """
    folder = Path(path)
    started = time.perf_counter()
    # With a reference, a run publishes only at its end, so that kills change nothing in the index.
    is_new = not folder.exists() or not _has_reference(folder)
    first = replace(settings, encode="elsewhere", publish=is_new)
    report = build(folder, documents, first, progress=progress, log=log)
    if not folder.exists():
        return report  # every document failed
    used = bind_encoder(folder, replace(settings, device="cpu"))  # the GPUs are those of the cluster
    on_gpu = cluster.n_gpus > 0 if settings.device is None else settings.device.startswith("cuda")
    encoding, n_encoders = EncoderSettings.of(used, on_gpu=on_gpu), cluster.n_workers(n_workers)
    parts = [part.absolute() for part in index_folders(folder)]
    counter = _Counter(report, progress, started)
    home = Home(cluster.home)
    n_missing = {part: _n_missing(part) for part in parts}
    counter.expect(sum(n_missing.values()))
    home.encode([part for part in parts if n_missing[part]], encoding, n_encoders, batch_chars, counter.add)
    with open_writers(folder) as target:
        refresh_reference(target, log)
    encoded_at = time.perf_counter()
    home.publish(parts, settings.factory, settings.recall_floor, log)
    report.seconds = encoded_at - started
    last = Settings(used, factory=settings.factory, recall_floor=settings.recall_floor)
    _add_last(report, build(folder, (), last, log=log))
    report.generation_seconds = time.perf_counter() - encoded_at
    return report


def _has_reference(folder: Path) -> bool:
    try:
        with open_snapshot(folder) as snapshot:
            return snapshot.reference_row is not None
    except IndexMismatch:  # nothing is committed yet; for a folder that is not an index, `build` raises the error
        return False


def _add_last(report: BuildReport, last: BuildReport) -> None:
    """Add the counts of a local run that ended the work: it encoded any documents that were left."""
    known = {failure.source for failure in report.failures}
    report.failures += [failure for failure in last.failures if failure.source not in known]
    for name in ("n_encoded", "n_tokens", "n_chunks", "encode_seconds"):
        setattr(report, name, getattr(report, name) + getattr(last, name))
    for name in ("disk_bytes", "n_missing", "tokens_missing"):
        setattr(report, name, getattr(last, name))


class _Counter:
    """Adds up what writers commit, and reports the progress."""

    def __init__(self, report: BuildReport, progress: Progress | None, started: float) -> None:
        self._report = report
        self._started = started
        self._activity = Activity(report, progress)
        self._n_without: dict[Path, int] = {}
        self._failed = {failure.source for failure in report.failures}

    def expect(self, n_documents: int) -> None:
        """Set the number of documents that will get vectors, and begin live progress."""
        self._activity.n_to_encode = self._report.n_encoded + n_documents
        if n_documents:
            self._activity.begin()

    def add(self, part: Path, commit: Commit) -> None:
        """Count a commit, and earlier commits whose writer died before it reported them."""
        report = self._report
        report.n_encoded += self._n_without.get(part, commit.n_without) - commit.n_without
        self._n_without[part] = commit.n_without
        report.n_tokens += commit.n_tokens
        report.n_chunks += commit.n_chunks
        report.encode_seconds += commit.encode_seconds
        report.failures += [failure for failure in commit.failures if failure.source not in self._failed]
        self._failed |= {failure.source for failure in commit.failures}
        report.seconds = time.perf_counter() - self._started
        self._activity.report_progress()


def _n_missing(part: Path) -> int:
    with open_snapshot(part) as snapshot:
        return int((~snapshot.has_vectors).sum())
