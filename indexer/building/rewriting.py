"""Writes an index again from its own content: with another encoder, or in another number of partitions.

Changes no text, and reads no file of a corpus. Another encoder: vectors are staged batch by batch beside the vectors
that searches read (`engine.store.writer`), so that a stopped run continues where it was. Once all documents are
staged, the index takes them in one transaction. Only then are the reference and the generation rebuilt; in between,
queries are exact scans.

Another number of partitions: vectors, term counts, texts and the reference are copied unchanged, so scores stay the
same to the last digit. A new folder is written beside its final place and appears there by one rename, complete or not
at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.encoders.encoder import EncodedDocument, Encoder
from engine.errors import DocumentError, IndexMismatch, RecallTooLow, command_line, named_faults
from engine.report.lines import duration
from engine.store.catalog import is_partitioned, partition_of
from engine.store.durable import appearing
from engine.store.partitioned import Snapshot, open_snapshot, stored_failures
from engine.store.snapshot import Positions
from engine.store.writer import PartitionWriters, Writer, drop_staged, open_writers, stage, staged_ids, switch
from engine.text.document import Document
from engine.words.counts import WordTables
from indexer.building.budget import tokens_per_second
from indexer.building.builder import check_number, is_free, write_empty
from indexer.building.pipeline import Pipeline, stored_batches, unencoded
from indexer.building.report import Activity, BuildReport, Progress
from indexer.generation import generations
from indexer.generation.reference import refresh_reference
from indexer.generation.resources import AUTO, DiskGuard, folder_bytes

_TIMED_DOCUMENTS = 16  # some of whose chunks are encoded to learn the pace


@dataclass(frozen=True, slots=True)
class Cost:
    """What is left to encode."""

    n_documents: int
    n_chunks: int  # by the present encoder
    n_tokens: int
    n_staged: int  # documents that a run which was stopped has encoded already
    seconds: float | None = None  # at the pace of a sample; None where nothing was timed

    def __str__(self) -> str:
        """One line for people."""
        already = f", {self.n_staged:,} documents are encoded already" if self.n_staged else ""
        time = "" if self.seconds is None else f", about {duration(self.seconds)} on this machine"
        return (
            f"encoding again would take {self.n_documents:,} documents ({self.n_chunks:,} chunks, {self.n_tokens:,} "
            f"tokens{time}{already})"
        )


@named_faults
def reencode(
    path: str | Path,
    *,
    encoder: Encoder | str | None = None,
    device: str | None = None,
    recall_floor: float = generations.RECALL_FLOOR,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> BuildReport:
    """Re-encode all documents that have vectors, and replace the old vectors.

    Searches use the old vectors until all new ones are stored. The same call continues a stopped run; a call with
    another encoder, or with the present one of the index, drops what that run staged.

    Raises:
        IndexBusy: another process writes the index.
        IndexMismatch: the index is partitioned or a partition, or it holds words alone.
        BudgetExceeded: the disk has no room for both sets of vectors; staged vectors are safe.
        RecallTooLow: the factory string of the index cannot reach the floor; queries scan the vectors.
    """
    with _opened(Path(path)) as writer:
        from engine.encoders.loading import load_encoder

        requested = encoder or str(writer.meta["encoder"]["name"])
        used = load_encoder(requested, device=device) if isinstance(requested, str) else requested
        pipeline = Pipeline(writer, used, activity=Activity(BuildReport(), progress), log=log)
        if n_dropped := drop_staged(writer, keep=used.fingerprint):
            log(f"dropped {n_dropped:,} shards that another encoder had begun")
        factory = _factory(writer)
        if used.fingerprint == writer.meta["encoder"]["fingerprint"]:
            log(f"{writer.folder} has the vectors of this encoder already")
        else:
            _stage_all(writer, pipeline, used)
            switch(writer, {"name": used.name, "fingerprint": used.fingerprint, "width": used.width}, factory)
        generations.join_small_shards(writer, pipeline.disk, log=log)
        refresh_reference(writer, log)
        if factory is not None:  # also where some documents have no vectors
            generations.refresh_generation(writer, factory, recall_floor=recall_floor, log=log)
        generations.derive(writer, factory or AUTO, recall_floor=recall_floor, log=log)
        return pipeline.report


@named_faults
def reencoding_cost(path: str | Path, encoder: Encoder) -> Cost:
    """The encoding that `reencode` would do; holds the writer lock meanwhile, and changes nothing.

    Raises:
        IndexBusy: another process writes the index.
        IndexMismatch: as in `reencode`.
    """
    statement = "SELECT id, n_chunks, tokens_total FROM documents WHERE n_chunks > 0 ORDER BY id"
    with _opened(Path(path)) as writer:
        with writer.read() as connection:
            rows = connection.execute(statement).fetchall()
        done = staged_ids(writer, encoder.fingerprint)
        left = [row for row in rows if row[0] not in done]
        pace = _pace(writer.documents([row[0] for row in left[:_TIMED_DOCUMENTS]]), encoder)
    n_chunks, n_tokens = (sum(row[column] for row in left) for column in (1, 2))
    return Cost(len(left), n_chunks, n_tokens, len(rows) - len(left), n_tokens / pace if pace else None)


def _pace(documents: list[Document], encoder: Encoder) -> float:
    """Tokens a second; 0 where no document has a token."""
    segmented = []
    for document in documents:
        try:
            segmented.append(encoder.segment(document))
        except DocumentError:
            continue
    return tokens_per_second(segmented, encoder) if segmented else 0.0


def _opened(path: Path) -> Writer:
    if is_partitioned(path):
        raise IndexMismatch(
            f"{path} is partitioned, and only an index without partitions is encoded again in its place; index the "
            "corpus again into a new one"
        )
    writer = Writer(path)
    try:
        if writer.is_partition:
            raise IndexMismatch(f"{path} is a partition, whose encoder is that of all; index the corpus again")
        if "encoder" not in writer.meta:
            raise IndexMismatch(f"{path} holds words alone; add vectors: {command_line('index', path)}")
    except IndexMismatch:
        writer.close()
        raise
    return writer


def _factory(writer: Writer) -> str | None:
    """The type of the present FAISS index, or of the one before a run that was stopped; None without one."""
    with writer.read() as connection:
        present = connection.execute("SELECT factory FROM generations").fetchone()
    before: str | None = writer.meta.get("factory_before")
    return present[0] if present else before


def _stage_all(writer: Writer, pipeline: Pipeline, encoder: Encoder) -> None:
    """Stage the vectors of all documents; those that have none, or no token, with their words alone."""

    def keep(ids: Sequence[int], encoded: Sequence[EncodedDocument], words: WordTables) -> int:
        return stage(writer, ids, encoded, words, encoder.fingerprint)

    rows = _documents(writer)
    done = staged_ids(writer, encoder.fingerprint)
    pipeline.begin()
    pipeline.encode_missing([number for number, n_chunks in rows if n_chunks and number not in done], store=keep)
    pipeline.activity.take_time()
    done = staged_ids(writer, encoder.fingerprint)
    left = [number for number, _ in rows if number not in done]
    for batch in stored_batches(writer, left, pipeline.batch_chars):
        ids, documents = [number for number, _ in batch], [document for _, document in batch]
        keep(ids, [unencoded(document, encoder.width) for document in documents], writer.count_words(documents))


def _documents(writer: Writer) -> list[tuple[int, int]]:
    """Catalog id and number of chunks of each document."""
    with writer.read() as connection:
        return connection.execute("SELECT id, n_chunks FROM documents ORDER BY id").fetchall()


_CHUNKS_AT_ONCE = 16_384  # copied into one shard; 25 MB at width 384
_DOCUMENTS_AT_ONCE = 1_024


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """The partitions that were made."""

    n_documents: tuple[int, ...]  # of each partition
    n_chunks: tuple[int, ...]


@named_faults
def partition(
    path: str | Path, out: str | Path, n_partitions: int, *, log: Callable[[str], None] = lambda _: None
) -> PartitionReport:
    """Copy an index into another number of partitions.

    Args:
        out: folder of the new index, empty or not existing.

    Raises:
        QueryError: the number is out of range.
        IndexMismatch: there is no index, or `out` is not empty.
        IndexDamaged: a shard is damaged; repair first.
        BudgetExceeded: the disk does not hold the copy.
    """
    source, out = Path(path), Path(out)
    check_number(n_partitions)
    if not is_free(out):
        raise IndexMismatch(f"{out} is there already; name a new folder")
    with open_snapshot(source) as snapshot:
        DiskGuard(out).refuse(folder_bytes(source))
        with appearing(out) as folder:
            if n_partitions > 1:
                assert snapshot.language is not None
                write_empty(folder, n_partitions, snapshot.language, snapshot.meta.get("encoder"))
            with open_writers(folder) as writers:
                return _copied(snapshot, writers, source, log)


def _copied(
    snapshot: Snapshot, target: PartitionWriters | Writer, source: Path, log: Callable[[str], None]
) -> PartitionReport:
    writers = target.parts
    owners = np.array([partition_of(doc_id, len(writers)) for doc_id in snapshot.doc_ids()], np.int64)
    assert snapshot.language is not None
    target.set_language(snapshot.language)
    if (encoder := snapshot.meta.get("encoder")) is not None:
        target.claim(encoder)
    for number, writer in enumerate(writers):
        positions = np.flatnonzero(owners == number)
        log(f"partition {number}: copying {len(positions):,} documents")
        for block in _blocks(snapshot, positions):
            writer.commit(list(_stored(snapshot, block)), snapshot.words(block, apart=True))
    doc_ids = dict(stored_failures(source))
    for failed, reason in snapshot.failures():
        doc_id = doc_ids.get(failed, "")
        writers[partition_of(doc_id or failed, len(writers))].record_failure(failed, reason, doc_id)
    if snapshot.reference_row is not None:
        target.publish_reference(snapshot.reference, is_partial=snapshot.has_partial_reference)
    for writer in writers:
        try:
            generations.derive(writer, AUTO, log=log)
        except RecallTooLow as error:
            log(f"{writer.folder.name}: no generation was published, queries scan all vectors ({error})")
            generations.refresh_word_postings(writer)
    n_chunks = [int(snapshot.locations.n_chunks[owners == number].sum()) for number in range(len(writers))]
    return PartitionReport(tuple(np.bincount(owners, minlength=len(writers)).tolist()), tuple(n_chunks))


def _blocks(snapshot: Snapshot, positions: Positions) -> Iterator[Positions]:
    """Runs of documents that are copied together."""
    for run in snapshot.runs(positions, _CHUNKS_AT_ONCE):
        for first in range(0, len(run), _DOCUMENTS_AT_ONCE):
            yield run[first : first + _DOCUMENTS_AT_ONCE]


def _stored(snapshot: Snapshot, positions: Positions) -> Iterator[tuple[Document, EncodedDocument]]:
    for position, (document, coverage) in zip(positions.tolist(), snapshot.documents(positions), strict=True):
        yield document, snapshot.encoded(position, coverage)
