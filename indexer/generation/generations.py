"""FAISS generations: built from the shards or extended, measured against exact search, and only then published.

New documents are added to the published generation where it can take them, so that the cost depends on them and not on
the whole index: the trained lists and codes stay. With more than twice the vectors of the training, it is rebuilt.
Compaction rewrites shards without the vectors of removed documents, and joins small ones. Encodes nothing.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import IndexDamaged, RecallTooLow, named_faults
from engine.search.partition import Selection
from engine.search.query import stored_queries
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.durable import Checksum
from engine.store.postings import Postings
from engine.store.shards import Shard
from engine.store.snapshot import IndexSnapshot, OpenGeneration, Positions
from engine.store.writer import Writer, open_writers
from engine.words.apart import ranges
from engine.words.counts import WordTables, join, pack, unpacked
from indexer.generation import resources

if TYPE_CHECKING:
    from engine.store.ann import AnnIndex

RECALL_FLOOR = 0.95  # of the exact top 10 documents; below it nothing is published
RECALL_TARGET = 0.985  # nprobe is raised up to this recall; long queries, and other samples, find up to 0.005 less
RECALL_K = 10
RECALL_QUERIES = 128  # the recall of fewer queries does not generalize to others
_FIRST_NPROBE = 8
_BLOCK_CHUNKS = 16_384  # vectors added at once
_SCAN_CHUNKS = 32_768  # target chunks compared at once, when the recall is measured
_STEP = 8  # nprobe is found to one part in 8
_NO_GAIN = 0.001  # of recall; the search ends after two doublings that gain less, once the floor is reached


class RecallSample:
    """Documents of an index as queries, with the results of an exact search, which is one pass for all of them."""

    def __init__(self, snapshot: IndexSnapshot, rng: np.random.Generator, *, n_queries: int = RECALL_QUERIES) -> None:
        """Draw documents, and search exactly with each, leaving out the document itself."""
        encoded = np.flatnonzero(snapshot.has_vectors)
        chosen = np.sort(rng.choice(encoded, min(n_queries, len(encoded)), replace=False))
        self._queries = [*zip(chosen.tolist(), stored_queries(snapshot, chosen), strict=True)]
        self._snapshot = snapshot
        tops = Searcher(snapshot, scan_chunks=_SCAN_CHUNKS).tops(self._queries, Selection(exact=True), k=RECALL_K)
        self._truth = [set(positions.tolist()) for positions, _ in tops]

    def __len__(self) -> int:
        return len(self._queries)

    def recall(self, candidate: OpenGeneration) -> float:
        """Share of the exact top documents that a generation finds, in [0, 1], the mean over the queries."""
        searcher = Searcher(self._snapshot, generation=candidate, scan_chunks=_SCAN_CHUNKS)
        shares = [
            len(truth.intersection(searcher.rank(query, request)[0].tolist())) / len(truth)
            for (_, query), truth in zip(self._queries, self._truth, strict=True)
            for request in [Request(k=RECALL_K, without=(query.document.doc_id,))]
            if truth
        ]
        return float(np.mean(shares)) if shares else 1.0


def tune(
    sample: RecallSample,
    candidate: OpenGeneration,
    floor: float,
    log: Callable[[str], None],
    first_nprobe: int | None = None,
    slack: float = 0.0,
) -> float:
    """Set the least nprobe that reaches the target, found by doubling and then by halving the last step.

    If no nprobe reaches the target, the least nprobe with about the best recall is set, if that recall reaches the
    floor. Returns the recall measured with that nprobe.

    Args:
        first_nprobe: first and least nprobe that is tried; 8 by default.
        slack: subtracted from the target where it was reached before, since a sample can underestimate recall.

    Raises:
        RecallTooLow: no nprobe reaches the floor.
    """
    ann, wanted = candidate.ann, max(floor, RECALL_TARGET - slack)
    measured: dict[int, float] = {}

    def reaches(nprobe: int) -> bool:
        ann.nprobe = nprobe
        measured[nprobe] = sample.recall(candidate)
        log(f"nprobe {nprobe}: document recall@{RECALL_K} {measured[nprobe]:.3f} over {len(sample)} queries")
        return measured[nprobe] >= wanted

    too_few, nprobe = 0, min(first_nprobe or _FIRST_NPROBE, ann.n_lists)
    while not (is_enough := reaches(nprobe)) and nprobe < ann.n_lists and not _is_flat(measured, floor):
        too_few, nprobe = nprobe, min(2 * nprobe, ann.n_lists)
    while is_enough and too_few and nprobe - too_few > max(1, nprobe // _STEP):
        middle = (too_few + nprobe) // 2
        too_few, nprobe = (too_few, middle) if reaches(middle) else (middle, nprobe)
    if not is_enough:
        nprobe = min(tried for tried, recall in measured.items() if recall >= max(measured.values()) - _NO_GAIN)
    if measured[nprobe] < floor:
        raise RecallTooLow(
            f"document recall@{RECALL_K} is {measured[nprobe]:.3f} at best, under the floor of {floor}; nothing was "
            "published: use --factory auto, or codes with more bits"
        )
    ann.nprobe = nprobe
    return measured[nprobe]


def _is_flat(measured: dict[int, float], floor: float) -> bool:
    """Whether the last two doublings gained no recall, and the floor was reached before them."""
    recalls = list(measured.values())
    return len(recalls) > 2 and recalls[-3] >= floor and max(recalls[-2:]) < recalls[-3] + _NO_GAIN


FRESH_SHARE = 0.01  # ratio of fresh to covered chunks above which a new generation is worth its time
FRESH_CHUNKS = 5_000  # up to this number, fresh chunks are scanned in a few milliseconds
FRESH_MOST = 20_000  # more fresh chunks need a new generation, however many chunks are covered
GROWTH = 2  # largest ratio of vectors to those at training for which the trained lists and codes are kept
POSTINGS_FILE = "words.safetensors"
MANY_WITHOUT_VECTORS = 5_000  # documents; up to this number queries read all term counts, beyond it postings choose
_EXTENSION_QUERIES = 48  # to measure the recall with
_CHANCE = 0.015  # by which a sample of this size can underestimate recall; else each extension would raise nprobe
_POSTINGS_AT_ONCE = 1_000  # documents whose term counts are inverted together


@dataclass(frozen=True, slots=True)
class GenerationState:
    """A published generation, and how much of it the present documents use."""

    factory: str
    n_vectors: int  # in the generation
    n_trained: int  # vectors that the index had when the generation was trained
    n_covered: int  # vectors in the generation whose documents are still in the index
    n_fresh: int  # chunks added later

    def takes_in(self, requested: str, built: str) -> bool:
        """Whether new documents can join.

        The generation must be of the requested type, hold no more vectors of removed documents than of others, and not
        grow beyond `GROWTH`.

        Args:
            requested: a factory string, or `auto`, which leaves the number of lists open.
            built: the factory string that would be built now.
        """
        is_type = _kind(self.factory) == _kind(built) if requested == resources.AUTO else self.factory == requested
        return (
            self.n_fresh > 0
            and is_type
            and self.n_vectors <= 2 * self.n_covered
            and self.n_vectors + self.n_fresh <= GROWTH * self.n_trained
        )


def generation_state(snapshot: IndexSnapshot) -> GenerationState | None:
    """The state of the published generation; None where there is none."""
    row = snapshot.generation_row
    if row is None:
        return None
    n_fresh = int(snapshot.locations.n_chunks[snapshot.is_fresh(row.through_chunk)].sum())
    trained = snapshot.meta.get("trained_vectors", row.n_vectors)
    return GenerationState(row.factory, int(row.n_vectors), trained, snapshot.n_chunks - n_fresh, n_fresh)


def _kind(factory: str) -> str:
    """A factory string without its number of lists."""
    return re.sub(r"IVF\d+", "IVF", factory)


def needs_generation(snapshot: IndexSnapshot, factory: str) -> bool:
    """Whether fresh documents, removals or another factory string call for a new generation."""
    state = generation_state(snapshot)
    if state is None:
        return snapshot.n_chunks > 0
    is_other = factory not in (resources.AUTO, state.factory)
    return is_other or is_outgrown(state.n_vectors, state.n_covered, state.n_fresh)


def is_outgrown(n_vectors: int, n_covered: int, n_fresh: int) -> bool:
    """Whether too many documents were added or removed since a generation was built; see `GenerationState`."""
    n_scanned = max(FRESH_CHUNKS, min(FRESH_SHARE * n_covered, FRESH_MOST))
    return n_fresh > n_scanned or n_vectors - n_covered > max(FRESH_CHUNKS, n_covered)


def derive(
    writer: Writer,
    factory: str = resources.AUTO,
    *,
    recall_floor: float = RECALL_FLOOR,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Publish a generation and word postings where they are due; errors as in `publish_generation`.

    A first generation is due when all documents have vectors.
    """
    if not writer.holds_anything:
        return
    with IndexSnapshot(writer.folder) as snapshot:
        is_complete = bool(snapshot.has_vectors.all()) or snapshot.generation_row is not None
    if is_complete:
        refresh_generation(writer, factory, recall_floor=recall_floor, log=log)
    refresh_word_postings(writer)


def refresh_generation(
    writer: Writer,
    factory: str,
    *,
    recall_floor: float = RECALL_FLOOR,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Publish a generation if the documents have outgrown the published one; with `scan`, none.

    New documents are added to the published generation where it can take them; otherwise it is rebuilt. Errors as in
    `publish_generation`.
    """
    with IndexSnapshot(writer.folder) as snapshot:
        if not needs_generation(snapshot, factory):
            return
        built, state = chosen_factory(snapshot, factory), generation_state(snapshot)
        build = _Build(writer, snapshot, recall_floor, log)
        if built == resources.SCAN:
            log("no FAISS index: queries scan the mapped shards, exactly and slowly")
        elif state is None or not state.takes_in(factory, built) or not build.extended():
            build.new(built)


def publish_generation(
    writer: Writer,
    factory: str = resources.AUTO,
    *,
    recall_floor: float = RECALL_FLOOR,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Build, measure, and publish a generation over all documents.

    Raises:
        BudgetExceeded: the disk is full; nothing changed.
        RecallTooLow: no nprobe reaches the floor; nothing changed.
        IndexMismatch: FAISS cannot build the factory string over these vectors.
    """
    with IndexSnapshot(writer.folder) as snapshot:
        _Build(writer, snapshot, recall_floor, log).new(chosen_factory(snapshot, factory))


def chosen_factory(snapshot: IndexSnapshot, factory: str) -> str:
    """The requested factory string, with `auto` the one for the size of the index."""
    return resources.factory_for(snapshot.n_chunks, snapshot.width) if factory == resources.AUTO else factory


@dataclass(frozen=True, slots=True)
class _Build:
    """Makes a generation of a snapshot, measures its recall, and publishes it in place of the previous one."""

    writer: Writer
    snapshot: IndexSnapshot
    recall_floor: float
    log: Callable[[str], None]
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def new(self, factory: str) -> None:
        from engine.store.ann import AnnIndex  # loads FAISS, which an index without vectors does not need

        snapshot = self.snapshot
        self.log(f"building {factory} over {snapshot.n_chunks:,} chunk vectors")
        n_training = resources.training_size(factory)
        blocks = snapshot.chunk_blocks(np.flatnonzero(snapshot.has_vectors), _BLOCK_CHUNKS)
        ann = AnnIndex.build(
            factory, snapshot.width, lambda: _sample(snapshot, n_training, self.rng), blocks, snapshot.n_chunks
        )
        self._publish(self._candidate(ann, factory), factory, n_trained=ann.n_vectors)

    def extended(self) -> bool:
        """Add the documents that are newer than the published generation, and publish.

        Returns:
            False if the old generation is damaged or the recall of the extended one is too low: nothing changed, and
            the generation must be rebuilt.
        """
        from engine.store.ann import AnnIndex  # loads FAISS

        snapshot, row = self.snapshot, self.snapshot.generation_row
        assert row is not None
        fresh = np.flatnonzero(snapshot.is_fresh(row.through_chunk) & snapshot.has_vectors)
        self.log(f"adding {int(snapshot.locations.n_chunks[fresh].sum()):,} chunk vectors to {row.factory}")
        try:
            ann = AnnIndex.open(
                self.writer.folder / row.file,
                Checksum(row.size_bytes, row.digest),
                n_vectors=row.n_vectors,
                width=snapshot.width,
                nprobe=row.nprobe,
                is_mapped=False,
            )
            ann.add(snapshot.chunk_blocks(fresh, _BLOCK_CHUNKS))
            n_trained = snapshot.meta.get("trained_vectors", row.n_vectors)
            self._publish(self._candidate(ann, row.factory), row.factory, n_trained=n_trained, before=row)
        except (IndexDamaged, RecallTooLow) as error:
            self.log(f"rebuilding: {error}")
            return False
        return True

    def _candidate(self, ann: AnnIndex, factory: str) -> OpenGeneration:
        locations, is_exact = self.snapshot.locations, resources.is_exact_factory(factory)
        last_chunk = int((locations.first_chunk + locations.n_chunks).max(initial=1)) - 1
        return OpenGeneration(ann, last_chunk, is_exact, None if is_exact else build_postings(self.snapshot))

    def _recall(self, candidate: OpenGeneration, before: Any) -> tuple[float, int]:  # noqa: ANN401
        """The recall with the nprobe that is set, and the number of queries; an exact index is not measured."""
        if candidate.is_exact:
            return 1.0, 0
        n_queries = RECALL_QUERIES if before is None else _EXTENSION_QUERIES
        sample = RecallSample(self.snapshot, self.rng, n_queries=n_queries)
        first, slack = (None, 0.0) if before is None else (before.nprobe, _CHANCE)
        return tune(sample, candidate, self.recall_floor, self.log, first, slack), len(sample)

    def _publish(
        self,
        candidate: OpenGeneration,
        factory: str,
        *,
        n_trained: int,
        before: Any = None,  # noqa: ANN401
    ) -> None:
        """Write a FAISS index whose recall is enough, and record it in the catalog."""
        recall, n_queries = self._recall(candidate, before)
        ann, folder = candidate.ann, self.writer.folder
        number, path = self.writer.next_generation_file()
        written, postings = ann.write(path), None
        if candidate.postings is not None:
            words = path.with_name(POSTINGS_FILE)
            postings = words.relative_to(folder).as_posix(), candidate.postings.write(words)
        generation = {
            "id": number,
            "factory": factory,
            "nprobe": ann.nprobe if ann.n_lists else 0,
            "through_chunk": candidate.through_chunk,
            "n_vectors": ann.n_vectors,
            "is_exact": candidate.is_exact,
            "recall": recall,
            "recall_queries": n_queries,
            "file": path.relative_to(folder).as_posix(),
            **asdict(written),
        }
        self.writer.publish(generation, trained_vectors=n_trained, postings=postings)


def _sample(snapshot: IndexSnapshot, size: int, rng: np.random.Generator) -> Vectors:
    """Training rows, drawn by whole documents so that few shards are touched."""
    order = rng.permutation(snapshot.n_documents)
    enough = int(np.searchsorted(np.cumsum(snapshot.locations.n_chunks[order]), size)) + 1
    vectors, _ = snapshot.chunk_vectors(np.sort(order[:enough]))
    # A view, which avoids a copy; it only cuts the rows of the last document beyond `size`.
    return vectors[:size]


def build_postings(snapshot: IndexSnapshot, positions: Positions | None = None) -> Postings:
    """The postings of words over documents of a snapshot, by default all."""
    if positions is None:
        positions = np.arange(snapshot.n_documents)

    def blocks() -> Iterator[WordTables]:
        for first in range(0, len(positions), _POSTINGS_AT_ONCE):
            yield snapshot.words(positions[first : first + _POSTINGS_AT_ONCE])

    return Postings.build(snapshot.locations.ids[positions], blocks, snapshot.reference.statistics)


def refresh_word_postings(writer: Writer) -> None:
    """Publish postings over the documents without vectors, if there are many and no generation has postings.

    The postings are rebuilt when the documents have outgrown them, and withdrawn when few documents lack vectors.
    """
    if not writer.holds_anything:
        return
    with IndexSnapshot(writer.folder) as snapshot:
        there, generation = snapshot.word_postings_row, snapshot.generation_row
        without = np.flatnonzero(~snapshot.has_vectors)
        is_chosen_otherwise = generation is not None and not generation.is_exact
        if len(without) <= MANY_WITHOUT_VECTORS or is_chosen_otherwise:
            if there is not None:
                writer.withdraw("word_postings")
            return
        if there is not None and snapshot.word_postings is not None:
            covered = np.isin(snapshot.locations.ids[without], snapshot.word_postings.ids)
            if not is_outgrown(there.n_documents, int(np.count_nonzero(covered)), int(np.count_nonzero(~covered))):
                return
        postings = build_postings(snapshot, without)
    writer.publish_word_postings(postings)


SHARD_CHUNKS = 65_536  # most chunks of a joined shard; 50 MB at width 384
WORDS_CHUNKS = 12  # the term counts of a document take about the room of this number of chunks
MANY_SHARDS = 8  # least number of small shards that are joined
_GROUPS_AT_ONCE = 8  # groups joined with one opened index, which maps replaced files until it is closed


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What compaction changed."""

    n_shards_before: int
    n_shards_after: int
    bytes_before: int
    bytes_after: int


@named_faults
def compact(path: str | Path, *, log: Callable[[str], None] = lambda _: None) -> CompactReport:
    """Give back the space of removed documents; ids, and so results, stay the same.

    Each new shard is committed by itself, so a kill loses nothing. A generation that holds vectors of removed
    documents is rebuilt.

    Raises:
        IndexBusy: another process writes the index.
        IndexDamaged: a shard is damaged; repair first.
    """
    with open_writers(Path(path)) as target:
        reports = [_compacted(writer, log) for writer in target.parts]
    return CompactReport(*(sum(getattr(report, field.name) for report in reports) for field in fields(CompactReport)))


def _compacted(writer: Writer, log: Callable[[str], None]) -> CompactReport:
    before = _shards(writer)
    groups = (group for group in _groups(before) if len(group) > 1 or group[0].has_dead)
    _rewrite_all(writer, groups, log)
    with IndexSnapshot(writer.folder) as snapshot:
        state = generation_state(snapshot)
    if state is not None and state.n_vectors > state.n_covered:
        publish_generation(writer, state.factory, log=log)
    writer.vacuum()
    after = _shards(writer)
    n_before, n_after = (sum(shard.size_bytes for shard in shards) for shards in (before, after))
    return CompactReport(len(before), len(after), n_before, n_after)


def join_small_shards(writer: Writer, log: Callable[[str], None] = lambda _: None) -> None:
    """Join the shards of many batches into few, from which a search gathers its vectors faster.

    Shards up to half of `SHARD_CHUNKS` are small. They are left alone until there are `MANY_SHARDS`, so that each
    vector is rewritten a few times at most, however many runs add documents. Ids, and so results, stay the same.
    """
    small = [shard for shard in _shards(writer) if shard.n_live <= SHARD_CHUNKS // 2]
    groups = [group for group in _groups(small) if len(group) > 1]
    # Files that are still mapped keep their place on disk.
    written = sum(sorted(sum(shard.size_bytes for shard in group) for group in groups)[-_GROUPS_AT_ONCE:])
    if len(small) >= MANY_SHARDS and written <= shutil.disk_usage(writer.folder).free:
        _rewrite_all(writer, groups, log)


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a shard."""

    number: int
    n_live: int  # chunks of documents that are still there; one without vectors counts as `WORDS_CHUNKS`
    size_bytes: int
    has_dead: bool


def _shards(writer: Writer) -> list[_Size]:
    weight = f"iif(n_chunks = 0, {WORDS_CHUNKS}, n_chunks)"
    live = f"SELECT shard_id, sum({weight}), count(*) FROM documents GROUP BY shard_id"
    with writer.read() as connection:
        n_live = {shard: (int(chunks), int(documents)) for shard, chunks, documents in connection.execute(live)}
        rows = connection.execute("SELECT id, n_documents, size_bytes FROM shards ORDER BY id").fetchall()
    sizes = []
    for number, n_written, size_bytes in rows:
        n_chunks, n_documents = n_live.get(number, (0, 0))
        sizes.append(_Size(number, n_chunks, size_bytes, n_documents < n_written))
    return sizes


def _groups(shards: Iterable[_Size]) -> Iterator[list[_Size]]:
    """Cut shards into runs of up to `SHARD_CHUNKS` live chunks; a larger shard is a run by itself."""
    group: list[_Size] = []
    n_chunks = 0
    for shard in shards:
        if group and n_chunks + shard.n_live > SHARD_CHUNKS:
            yield group
            group, n_chunks = [], 0
        group.append(shard)
        n_chunks += shard.n_live
    if group:
        yield group


def _rewrite_all(writer: Writer, groups: Iterable[list[_Size]], log: Callable[[str], None]) -> None:
    """Make one shard of each group; an opened index serves for several."""
    waiting = iter(groups)
    while some := list(islice(waiting, _GROUPS_AT_ONCE)):
        with IndexSnapshot(writer.folder) as snapshot:
            for group in some:
                log(f"joining {len(group)} shards")
                _rewrite(writer, snapshot, [shard.number for shard in group])


def _rewrite(writer: Writer, snapshot: IndexSnapshot, shards: list[int]) -> None:
    members = np.concatenate([live_members(snapshot, number) for number in shards])
    pieces = [live_shard(snapshot, number) for number in shards]
    joined = Shard(
        documents=_rows(snapshot, [piece.documents for piece in pieces]),
        sections=_rows(snapshot, [piece.sections for piece in pieces]),
        chunks=_rows(snapshot, [piece.chunks for piece in pieces]),
        spans=np.concatenate([piece.spans for piece in pieces]),
        words=pack(join([unpacked(piece.words) for piece in pieces])),
    )
    writer.replace_shards(shards, joined, snapshot.locations.of(members))


def _rows(snapshot: IndexSnapshot, pieces: Sequence[NDArray[np.float16]]) -> NDArray[np.float16]:
    """Rows of several shards; shards written before the index had an encoder have width 0 and become zeros."""
    wide = [piece if piece.shape[1] else np.zeros((len(piece), snapshot.width), np.float16) for piece in pieces]
    return np.concatenate(wide)


def live_members(snapshot: IndexSnapshot, number: int) -> Positions:
    """The documents of a shard that are still there, in the order of `live_shard`."""
    return np.flatnonzero(snapshot.locations.shard == number)


def live_shard(snapshot: IndexSnapshot, number: int) -> Shard:
    """A shard without what removed documents left in it."""
    locations, shard, members = snapshot.locations, snapshot.shard(number), live_members(snapshot, number)
    chunks = ranges(locations.chunk_row[members], locations.n_chunks[members])
    return Shard(
        documents=shard.documents[locations.document_row[members]],
        sections=shard.sections[ranges(locations.section_row[members], locations.n_sections[members])],
        chunks=shard.chunks[chunks],
        spans=shard.spans[chunks],
        words=shard.words.of(locations.document_row[members]),
    )
