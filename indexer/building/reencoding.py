"""Re-encodes an index with another encoder, from its stored text. Changes no text, and reads no file of a corpus.

Vectors are staged batch by batch beside the vectors that searches read (`engine.store.staging`), so that a stopped
run continues where it was. Once all documents are staged, the index takes them in one transaction. Only then are the
reference and the generation rebuilt; in between, queries are exact scans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.encoders.encoder import EncodedDocument, Encoder
from engine.errors import DocumentError, IndexMismatch, named_faults
from engine.report.lines import duration
from engine.store.factory import AUTO
from engine.store.manifest import is_partitioned
from engine.store.staging import drop_staged, stage, staged_ids, switch
from engine.store.writer import Writer
from engine.text.document import Document
from engine.words.counts import WordTables
from indexer.building.budget import tokens_per_second
from indexer.building.pipeline import Pipeline, stored_batches, unencoded
from indexer.building.report import Activity, BuildReport, Progress
from indexer.generation.compaction import join_small_shards
from indexer.generation.generations import derive, refresh_generation
from indexer.generation.recall import RECALL_FLOOR
from indexer.generation.reference import refresh_reference

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
    recall_floor: float = RECALL_FLOOR,
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
        used = _loaded(writer, encoder, device)
        pipeline = Pipeline(writer, used, activity=Activity(BuildReport(), progress), log=log)
        if n_dropped := drop_staged(writer, keep=used.fingerprint):
            log(f"dropped {n_dropped:,} shards that another encoder had begun")
        factory = _factory(writer)
        if used.fingerprint == writer.meta["encoder"]["fingerprint"]:
            log(f"{writer.folder} has the vectors of this encoder already")
        else:
            _stage_all(writer, pipeline, used)
            switch(writer, {"name": used.name, "fingerprint": used.fingerprint, "width": used.width}, factory)
        join_small_shards(writer, pipeline.disk, log=log)
        refresh_reference(writer, log)
        if factory is not None:  # also where some documents have no vectors
            refresh_generation(writer, factory, recall_floor=recall_floor, log=log)
        derive(writer, factory or AUTO, recall_floor=recall_floor, log=log)
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
            raise IndexMismatch(f"{path} holds words alone; add vectors: longmatch index {path}")
    except IndexMismatch:
        writer.close()
        raise
    return writer


def _loaded(writer: Writer, encoder: Encoder | str | None, device: str | None) -> Encoder:
    from engine.encoders.loading import load_encoder

    requested = encoder or str(writer.meta["encoder"]["name"])
    return load_encoder(requested, device=device) if isinstance(requested, str) else requested


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
    pipeline.encode_missing([one for one, n_chunks in rows if n_chunks and one not in done], keep)
    pipeline.activity.take_time()
    done = staged_ids(writer, encoder.fingerprint)
    left = [one for one, _ in rows if one not in done]
    for batch in stored_batches(writer, left, pipeline.batch_chars):
        ids, documents = [document_id for document_id, _ in batch], [document for _, document in batch]
        keep(ids, [unencoded(document, encoder.width) for document in documents], writer.count_words(documents))


def _documents(writer: Writer) -> list[tuple[int, int]]:
    """Catalog id and number of chunks of each document."""
    with writer.read() as connection:
        return connection.execute("SELECT id, n_chunks FROM documents ORDER BY id").fetchall()
