"""Repairs an index, and removes documents from it, from whichever partition they are in.

A repair rebuilds derived files, encodes documents that lost only their vectors, and lists what is lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from engine.encoders.encoder import Encoder
from engine.encoders.loading import load_encoder
from engine.errors import IndexDamaged, QueryError, RecallTooLow, command_line, named_faults
from engine.store import catalog
from engine.store.durable import fsync_folder
from engine.store.shards import SHARD_FOLDER
from engine.store.writer import PartitionWriters, Writer, open_writers
from indexer.building.pipeline import Pipeline
from indexer.generation.generations import RECALL_FLOOR, refresh_generation, refresh_word_postings
from indexer.generation.reference import refresh_reference
from indexer.generation.resources import AUTO
from indexer.upkeep.verify import Damage, Finding, verify


@named_faults
def remove(path: str | Path, doc_ids: Sequence[str]) -> int:
    """Remove documents; their space on disk comes back with `compact`.

    Raises:
        QueryError: there is no such document; nothing was removed.
        IndexBusy: another process writes the index.
    """
    with open_writers(Path(path)) as target:
        of_part: list[list[str]] = [[] for _ in target.parts]
        for doc_id in dict.fromkeys(doc_ids):
            of_part[catalog.partition_of(doc_id, len(target.parts))].append(doc_id)
        ids = [_known(writer, names, path) for writer, names in zip(target.parts, of_part, strict=True)]
        for writer, known in zip(target.parts, ids, strict=True):
            if known:
                writer.remove(known)
    return sum(map(len, ids))


def _known(writer: Writer, names: Sequence[str], path: str | Path) -> list[int]:
    indexed = writer.indexed(names)
    if absent := [name for name in names if name not in indexed]:
        listing = command_line("show", path, "--documents")
        raise QueryError(f"no document {absent[0]!r} in {path}; nothing was removed: {listing}")
    return [there.id for there in indexed.values()]


LOST_FOLDER = "lost"  # below an index, for shards that nothing names any more; it can be deleted
_RECALL_NOISE = 0.02  # by which two trainings over the same vectors may differ


@dataclass
class RepairReport:
    """The findings, and the outcome of the repair."""

    found: list[Finding]
    mended: list[str] = field(default_factory=list)  # one line each
    lost: list[str] = field(default_factory=list)  # doc_ids that are no longer in the index
    reencoded: list[str] = field(default_factory=list)  # doc_ids encoded again from their stored text


@named_faults
def repair(
    path: str | Path,
    *,
    encode: bool = False,
    encoder: Encoder | None = None,
    device: str | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> RepairReport:
    """Bring an index back to a state in which every query is correct.

    FAISS files are rebuilt from shards without encoding. Where the catalog lost commits, the index goes on without
    them, and their shards are moved to the folder `lost`. With `encode`, documents whose shard is damaged are encoded
    again from their stored text; otherwise they are removed and reported as lost. Documents without vectors keep their
    text, and their words are counted again.

    Raises:
        IndexDamaged: SQLite cannot read the catalog; index the corpus again or restore a copy.
        IndexBusy: another process writes the index.
    """
    folder = Path(path)
    if catalog.is_partitioned(folder):
        return _repair_partitions(folder, partial(repair, encode=encode, encoder=encoder, device=device, log=log))
    report = RepairReport(found=verify(path))
    kinds = {finding.damage for finding in report.found}
    if Damage.CATALOG in kinds:
        first = next(finding for finding in report.found if finding.damage is Damage.CATALOG)
        raise IndexDamaged(
            f"{folder / catalog.CATALOG_FILE} is damaged beyond repair ({first.what}); restore a copy of the folder, "
            "or delete it and index the corpus again"
        )
    _set_aside(folder, report)
    with Writer(Path(path), trust_catalog=True) as writer:
        _drop_documents(writer, report)
        _drop_shards(writer, report, encode=encode, encoder=encoder, device=device)
        _drop_reference(writer, report)
        factory, floor = _drop_generations(writer, report)
        try:
            refresh_generation(writer, factory, recall_floor=floor, log=log)
        except RecallTooLow as error:
            report.mended.append(f"no generation was published, queries scan all vectors ({error})")
        refresh_word_postings(writer)
    return report


def _repair_partitions(folder: Path, repair_part: Callable[[Path], RepairReport]) -> RepairReport:
    """Repair each partition, and the reference that all partitions share."""
    report = RepairReport(found=verify(folder))
    for finding in report.found:
        if finding.damage is Damage.MANIFEST:
            again = command_line("upkeep", "repair", folder)
            raise IndexDamaged(f"{finding.where}: {finding.what}; then run it again: {again}")
    manifest = catalog.read_manifest(folder)
    damaged = [finding.where for finding in report.found if finding.damage is Damage.REFERENCE]
    if damaged:
        catalog.write_manifest(folder, replace(manifest, reference=None))
        report.mended += map(_redrawn, damaged)
    for path in catalog.partition_folders(folder, manifest):
        of_part = repair_part(path)
        report.mended += [f"{path.name}: {line}" for line in of_part.mended]
        report.lost += of_part.lost
        report.reencoded += of_part.reencoded
    with PartitionWriters(folder) as writers:
        refresh_reference(writers, report.mended.append)
    return report


def _redrawn(file: str) -> str:
    return f"{file}: another reference was drawn, so scores differ from those before"


def _set_aside(folder: Path, report: RepairReport) -> None:
    """Move shards that a catalog which lost commits does not name out of the way of new ones."""
    for finding in report.found:
        if finding.damage is Damage.COMMITS and finding.where == catalog.CATALOG_FILE:
            report.mended.append(f"{catalog.CATALOG_FILE}: {finding.what}; index the corpus again to add what was lost")
        elif finding.damage is Damage.COMMITS and (folder / SHARD_FOLDER) in (folder / finding.where).parents:
            target = folder / LOST_FOLDER / Path(finding.where).name
            while target.exists():
                target = target.with_name(f"{target.name}~")
            target.parent.mkdir(exist_ok=True)
            fsync_folder(folder)
            (folder / finding.where).rename(target)
            fsync_folder(target.parent)
            report.mended.append(f"{finding.where}: moved to {target.relative_to(folder)}, as no document names it")


def _drop_documents(writer: Writer, report: RepairReport) -> None:
    names = [finding.where for finding in report.found if finding.damage is Damage.DOCUMENT]
    if names:
        writer.remove([known.id for known in writer.indexed(names).values()])
        report.lost += names


def _drop_shards(
    writer: Writer, report: RepairReport, *, encode: bool, encoder: Encoder | None, device: str | None
) -> None:
    """Drop damaged shards; with `encode` encode their documents again into new shards, otherwise remove them."""
    files = [finding.where for finding in report.found if finding.damage is Damage.SHARD]
    if not files:
        return
    documents = "SELECT id, doc_id, n_chunks FROM documents WHERE shard_id IN ({marks}) ORDER BY id"
    with writer.read() as connection:
        shards = [
            shard for (shard,) in catalog.execute_in(connection, "SELECT id FROM shards WHERE file IN ({marks})", files)
        ]
        rows = catalog.execute_in(connection, documents, shards)
    by_words = [number for number, _, n_chunks in rows if not n_chunks]
    if by_words:  # the text is all that they were made of
        Pipeline(writer, None).encode_again(writer.documents(by_words))
        report.mended.append(f"words of {len(by_words):,} documents: counted again in their stored text")
    ids = [number for number, _, n_chunks in rows if n_chunks]
    names = [doc_id for _, doc_id, n_chunks in rows if n_chunks]
    if encode and ids:
        used = encoder or load_encoder(writer.meta["encoder"]["name"], device=device)
        writer.claim({"name": used.name, "fingerprint": used.fingerprint, "width": used.width})
        Pipeline(writer, used).encode_again(writer.documents(ids))
        report.reencoded += names
    else:
        writer.remove(ids)
        report.lost += names
    writer.drop_shards(shards)
    report.mended += [f"{file}: taken out" for file in files]


def _drop_reference(writer: Writer, report: RepairReport) -> None:
    """Draw another reference in the place of a damaged one, and pin one where there is none."""
    damaged = [finding.where for finding in report.found if finding.damage is Damage.REFERENCE]
    if damaged:
        writer.withdraw("reference")
        report.mended += map(_redrawn, damaged)
    refresh_reference(writer, report.mended.append)


def _drop_generations(writer: Writer, report: RepairReport) -> tuple[str, float]:
    """Withdraw damaged generations; returns the factory string and the recall floor for the rebuild.

    If the old generation was published with a lower floor than the default, its own recall is about that floor.
    """
    damaged = [finding.where for finding in report.found if finding.damage is Damage.GENERATION]
    with writer.read() as connection:
        row = connection.execute("SELECT factory, recall FROM generations").fetchone()
    if damaged:
        writer.withdraw("generations", "word_postings")
        report.mended += [f"{file}: rebuilt from the shards" for file in damaged]
    return (row[0], min(RECALL_FLOOR, row[1] - _RECALL_NOISE)) if row is not None else (AUTO, RECALL_FLOOR)
