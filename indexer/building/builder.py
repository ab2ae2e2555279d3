"""`build`: make or update an index from documents; the order of the steps, and which partition takes which document.

Partitions of a new index are written beside their place and appear there by one rename, so that a run that was killed
finds all or none. A run that fails before its first commit leaves no folder behind.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from engine.encoders.encoder import Encoder
from engine.errors import DocumentError, EngineError, IndexMismatch, QueryError, command_line, named_faults
from engine.readers import Unreadable
from engine.store import catalog
from engine.store.checks import COMMITS_FILE
from engine.store.durable import appearing
from engine.store.partitioned import open_snapshot, stored_meta
from engine.store.reference import REFERENCE_FOLDER
from engine.store.shards import SHARD_FOLDER
from engine.store.writable import LOCK_FILE
from engine.store.writer import PartitionWriters, Writer, open_writers
from engine.text.document import Document
from engine.words.languages import check_language, detect_language
from indexer.building.pipeline import BATCH_CHARS, EncodeBatches, Pipeline, groups, n_chars, run
from indexer.building.report import Activity, BuildReport, Progress
from indexer.generation import resources
from indexer.generation.generations import RECALL_FLOOR, derive, join_small_shards
from indexer.generation.reference import refresh_reference, sample_documents


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
        folders = catalog.index_folders(folder)
        with ExitStack() as held:
            writers = [held.enter_context(Writer(path)) for path in folders]
            if any(writer.has_committed for writer in writers):
                return
            (folder / catalog.MANIFEST_FILE).unlink(missing_ok=True)
            for writer in writers:
                _remove_files(writer.folder)
        for path in dict.fromkeys([*folders, folder]):  # the folder of partitions last
            path.rmdir()


def _remove_files(folder: Path) -> None:
    """Remove the files of an index that holds nothing."""
    for file in folder.glob(f"{catalog.CATALOG_FILE}*"):
        file.unlink()
    for part in (SHARD_FOLDER, catalog.ANN_FOLDER, REFERENCE_FOLDER):
        shutil.rmtree(folder / part, ignore_errors=True)
    (folder / COMMITS_FILE).unlink()
    (folder / LOCK_FILE).unlink()


def check_number(n_partitions: int) -> None:
    """Raise `QueryError` if an index cannot have so many partitions."""
    if not 1 <= n_partitions <= catalog.MOST_PARTITIONS:
        raise QueryError(f"{n_partitions} partitions; there can be 1 to {catalog.MOST_PARTITIONS:,}")


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
        language = detect_language(document.text for document in first if isinstance(document, Document))
    with appearing(place) as folder:
        write_empty(folder, n_partitions, language, None, first_run)
    return documents


def _check_present(place: Path, n_partitions: int) -> None:
    """Check that an existing index has this number of partitions."""
    if not catalog.holds_index(place):
        raise IndexMismatch(f"{place} is not empty and holds no index; name a new folder or an index")
    n_present = len(catalog.read_manifest(place).partitions) if catalog.is_partitioned(place) else 1
    if n_present != n_partitions:
        what = f"has {n_present} partitions" if n_present > 1 else "is there already, and is not partitioned"
        raise IndexMismatch(
            f"{place} {what}, not {n_partitions}; leave --partitions out, or copy it into a new index of "
            f"{n_partitions} partitions: {command_line('upkeep', 'partition', place, 'OUT', '-p')} {n_partitions}"
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
        with Writer(folder / catalog.partition_folder(number)) as writer:
            if first_run is not None and number == 0:
                writer.set_values({"first_run": dict(first_run)})
            writer.bind_partition(number, n_partitions, language)
            if encoder is not None:
                writer.claim(encoder)
    entries = tuple(catalog.Entry(catalog.partition_folder(number), 0, 0) for number in range(n_partitions))
    catalog.write_manifest(folder, catalog.Manifest(encoder, language, None, entries))


EncodeNow: TypeAlias = Literal["none", "later", "all"]
FIRST_RUN = "first_run"  # the named value that holds the options of a first run, until a run ends


@dataclass(frozen=True, slots=True)
class Settings:
    """How documents are indexed.

    With `encode` of `all`, all documents of the index get vectors in this run; with `later`, a sample that thresholds
    come from, and others when a query selects them, see `engine.on_demand`; with `none`, the index is searched by words
    alone.
    """

    encoder: Encoder | str | None = None  # by default that of the index, or of its first run, or the bundled one
    device: str | None = None  # of a named encoder
    encode: EncodeNow = "all"
    factory: str = resources.AUTO  # FAISS factory string, or `scan` for none: queries then read all vectors
    recall_floor: float = RECALL_FLOOR  # least document recall of a new generation
    language: str | None = None  # by default that of the index, or the one detected in the first documents
    partitions: int | None = None  # number for a new index; an existing index must have as many
    prune: bool = False  # remove documents of the index that are not in the stream
    replace_files: bool = False  # let a file replace another one, still there, of the same doc_id; else it fails
    elsewhere: EncodeBatches | None = None  # makes the vectors, of stored documents, in other processes

    def __post_init__(self) -> None:
        """Refuse another `encode`, which a program can pass."""
        if self.encode not in get_args(EncodeNow):
            raise QueryError(f"encode is {self.encode!r}; it must be one of: {', '.join(get_args(EncodeNow))}")


@named_faults
def build(
    path: str | Path,
    documents: Iterable[Document | Unreadable],
    settings: Settings | None = None,
    *,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda _: None,
    **fields: Any,  # noqa: ANN401
) -> BuildReport:
    """Create or update an index.

    Unchanged documents are skipped and changed documents are replaced, in any order of the documents. A run that was
    killed continues after its last commit. A first run that commits nothing leaves no folder: one that is refused or
    interrupted, or whose documents all fail.

    Args:
        documents: a stream; `indexer.building.corpus.read_corpus` makes one from paths.
        fields: of the settings, where they differ.

    Raises:
        IndexBusy: another process writes the index.
        IndexMismatch: the index belongs to another encoder or language, has another number of partitions, or is itself
            a partition; or FAISS does not know the factory string.
        QueryError: there is no such language, or the number of partitions is out of range.
        DocumentError: a partitioned index cannot begin, since there is no document and no language.
        BudgetExceeded: the disk is full; committed documents are safe.
        IndexDamaged: a shard that had to be read is damaged; committed documents are safe, repair first.
        RecallTooLow: the factory string cannot reach the floor; documents are committed, the generation is not.
    """
    settings = replace(settings or Settings(), **fields)
    folder = Path(path)
    if note := resources.network_note(folder):
        log(note)
    with without_stub(folder):
        is_new = is_free(folder)
        if settings.partitions is not None:
            begun = _wishes(settings)
            documents = begin_partitions(folder, settings.partitions, documents, settings.language, begun)
        with open_writers(folder) as target:
            _refuse_partition(target)
            first = target.parts[0]
            stopped = None if is_new else first.meta.get(FIRST_RUN)
            if stopped:
                if settings.factory == resources.AUTO:
                    settings = replace(settings, factory=stopped["factory"])
                if settings.encoder is None:
                    settings = replace(settings, encoder=stopped["encoder"])
                    log(f"going on with a first run that was stopped: {_described(_wishes(settings))}")
            if stopped or not any(writer.has_committed for writer in target.parts):
                first.set_values({FIRST_RUN: _wishes(settings)})
            if settings.language is not None:
                target.set_language(settings.language)
            used = _claimed(target, settings) if settings.encode in ("later", "all") else None
            report = _written(target, documents, used, settings, progress, log)
            if first.meta.get(FIRST_RUN):
                first.set_values({FIRST_RUN: None})
    if is_new and has_only_failures(report):
        remove_stub(folder)
    report.disk_bytes = resources.folder_bytes(folder)
    return report


def _wishes(settings: Settings) -> dict[str, str | None]:
    """What a first run asks for, stored before it works, so that a run after a kill goes on with the same."""
    encoder = settings.encoder
    name = encoder if encoder is None or isinstance(encoder, str) else encoder.name
    return {"encode": settings.encode, "encoder": name, "factory": settings.factory}


def _described(wishes: Mapping[str, str | None]) -> str:
    return " ".join(f"--{name} {value}" for name, value in wishes.items() if value is not None)


def _written(
    target: PartitionWriters | Writer,
    documents: Iterable[Document | Unreadable],
    used: Encoder | None,
    settings: Settings,
    progress: Progress | None,
    log: Callable[[str], None],
) -> BuildReport:
    """Commit documents, and publish what is derived from them."""
    activity = Activity(BuildReport(), progress)
    pipelines = [
        Pipeline(
            writer,
            used if settings.elsewhere is None else None,
            encodes_later=settings.encode != "all",
            replace_files=settings.replace_files,
            activity=activity,
            log=log,
        )
        for writer in target.parts
    ]
    report = run(pipelines, documents, prune=settings.prune)
    if used is not None:
        missing = _missing(target, settings.encode)
        activity.n_to_encode = report.n_encoded + sum(map(len, missing)) if any(missing) else 0
        for pipeline, of_part in zip(pipelines, missing, strict=True):
            pipeline.encode_missing(of_part, settings.elsewhere)
    started = time.perf_counter()
    for writer in target.parts:
        join_small_shards(writer, log)
    report.seconds += time.perf_counter() - started
    started = time.perf_counter()
    if target.parts[0].holds_anything:
        refresh_reference(target, log)
        with open_snapshot(target.folder) as snapshot:
            left = snapshot.missing_tokens[~snapshot.has_vectors]
        report.n_missing, report.tokens_missing = len(left), int(left.sum())
    for writer in target.parts:
        derive(writer, settings.factory, recall_floor=settings.recall_floor, log=log)
    report.generation_seconds = time.perf_counter() - started
    return report


def _refuse_partition(target: PartitionWriters | Writer) -> None:
    if isinstance(target, Writer) and target.is_partition:
        whole = target.folder.parent
        raise IndexMismatch(
            f"{target.folder} is a partition of {whole}, which takes documents: {command_line('index', whole)}"
        )


def _claimed(target: PartitionWriters | Writer, settings: Settings) -> Encoder:
    """The encoder of a run, to which the index is bound."""
    # An index without vectors needs no encoder.
    from engine.encoders.loading import load_encoder

    used = settings.encoder
    if used is None or isinstance(used, str):
        used = load_encoder(_requested(target.parts[0].meta, used), device=settings.device)
    resources.check_factory_option(settings.factory, used.width)
    target.claim({"name": used.name, "fingerprint": used.fingerprint, "width": used.width})
    return used


def _missing(target: PartitionWriters | Writer, encode: EncodeNow) -> list[list[int]]:
    """Catalog ids, for each part, of the documents without vectors that get some in this run."""
    missing = [writer.unencoded() for writer in target.parts]
    if encode == "all" or not any(missing):
        return missing
    with open_snapshot(target.folder) as snapshot:
        chosen = snapshot.split(sample_documents(snapshot))
        ids = {number: snapshot.parts[number].locations.ids[positions].tolist() for number, _, positions in chosen}
    return [ids.get(number, []) for number in range(len(target.parts))]


def encoder_for(path: Path, name: str | None, device: str | None) -> Encoder:
    """The encoder that `build` would use: the named one, the one of the index, or the default."""
    from engine.encoders.loading import load_encoder

    return load_encoder(_requested(stored_meta(path), name), device=device)


def encoder_name(path: Path, name: str | None) -> str:
    """The name of the encoder that `encoder_for` loads, without its dtype."""
    from engine.encoders.loading import DEFAULT_ENCODER, split_name

    return split_name(_requested(stored_meta(path), name) or DEFAULT_ENCODER)[0]


def _requested(meta: Mapping[str, Any], name: str | None) -> str | None:
    """The named encoder, or the one that an index is bound to or that its first run was called with, if any."""
    bound, first_run = meta.get("encoder") or {}, meta.get(FIRST_RUN) or {}
    return name or bound.get("name") or first_run.get("encoder")
