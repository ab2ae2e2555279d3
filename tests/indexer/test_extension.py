"""New documents join the published generation, and small shards and those with removed documents are rewritten."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeAlias
from unittest.mock import Mock

import pytest

import indexer.generation.generations as generation_module
from engine.errors import RecallTooLow
from engine.index import Index
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation import generations
from indexer.generation.generations import GenerationState, compact, join_small_shards, refresh_generation
from tests.fakes import FakeEncoder, make_corpus

DOCUMENTS = make_corpus(160)
Start: TypeAlias = Callable[[str], Path]  # the folder of a generation of this factory


@pytest.fixture(autouse=True)
def few_fresh_chunks_and_queries_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation_module, "FRESH_CHUNKS", 10)
    monkeypatch.setattr(generation_module, "RECALL_QUERIES", 12)  # each is searched with for every nprobe
    monkeypatch.setattr(generation_module, "_EXTENSION_QUERIES", 12)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A folder of sixty documents under a generation of their own, built once and only to be copied."""

    @cache
    def built(factory: str) -> Path:
        folder = tmp_path_factory.mktemp("started") / "x.lm"
        build(folder, DOCUMENTS[:60], encoder=FakeEncoder(), factory=factory, recall_floor=0.5)
        return folder

    return built


@pytest.fixture
def start(template: Start, tmp_path: Path) -> Start:
    return lambda factory: Path(shutil.copytree(template(factory), tmp_path / "x.lm"))


def add(folder: Path, documents: list[Document]) -> None:
    with Writer(folder) as writer:
        writer.commit(list(zip(documents, FakeEncoder().encode(documents), strict=True)))


def refresh(folder: Path, factory: str = "auto", **options: object) -> list[str]:
    logged: list[str] = []
    with Writer(folder) as writer:
        refresh_generation(writer, factory, log=logged.append, **options)  # type: ignore[arg-type]
    return logged


def assert_covers_all(folder: Path, number: int, factory: str) -> None:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        row, generation = index.snapshot.generation_row, index.snapshot.generation
        assert row is not None and generation is not None
        assert (row.id, row.factory) == (number, factory)
        assert not index.snapshot.is_fresh(generation.through_chunk).any()
        for name in index.snapshot.doc_ids()[::13]:
            requests = (Request(exact=True), Request())
            exact, found = ([hit.doc_id for hit in index.search(name, request).hits] for request in requests)
            assert len(set(exact) & set(found)) >= 0.8 * len(exact)


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["Flat", "SQ8", "IVF4,Flat", "IVF4,PQ16x4fs"])
def test_new_documents_join_the_existing_generation(start: Start, factory: str) -> None:
    folder = start(factory)
    add(folder, DOCUMENTS[60:90])
    n_fresh = sum(len(one.chunks) for one in FakeEncoder().encode(DOCUMENTS[60:90]))
    logged = refresh(folder, factory, recall_floor=0.5)
    assert logged[0] == f"adding {n_fresh} chunk vectors to {factory}"
    assert not any(line.startswith("building") for line in logged)
    assert_covers_all(folder, 2, factory)


@pytest.mark.slow
def test_vectors_in_the_generation_stay_as_they_were(start: Start) -> None:
    folder = start("IVF4,PQ16x4fs")
    query = FakeEncoder().encode(DOCUMENTS[150:151])[0].chunks
    with IndexSnapshot(folder) as snapshot:
        last = snapshot.generation.through_chunk
        before = dict(zip(*(row[0] for row in snapshot.generation.ann.search(query[:1], 10**6, nprobe=4)), strict=True))
    add(folder, DOCUMENTS[60:70])
    refresh(folder, "IVF4,PQ16x4fs", recall_floor=0.5)
    with IndexSnapshot(folder) as snapshot:
        after = dict(zip(*(row[0] for row in snapshot.generation.ann.search(query[:1], 10**6, nprobe=4)), strict=True))
    assert {one: similarity for one, similarity in after.items() if one <= last} == before
    assert sorted(after) == sorted({*before, *range(last + 1, max(after) + 1)})


@pytest.mark.slow
def test_the_generation_of_a_doubled_corpus_is_rebuilt(start: Start) -> None:
    folder = start("IVF4,Flat")
    for first, word in ((60, "adding"), (85, "adding"), (110, "building"), (135, "adding")):
        add(folder, DOCUMENTS[first : first + 25])
        assert refresh(folder, "IVF4,Flat")[0].startswith(word)
    assert_covers_all(folder, 5, "IVF4,Flat")


@pytest.mark.slow
@pytest.mark.parametrize(("requested", "built"), [("IVF8,Flat", "IVF8,Flat"), ("auto", "Flat")], ids=["lists", "type"])
def test_another_number_of_lists_or_type_rebuilds_the_generation(start: Start, requested: str, built: str) -> None:
    folder = start("IVF4,Flat")
    add(folder, DOCUMENTS[60:70])
    assert refresh(folder, requested)[0].startswith(f"building {built}")
    assert_covers_all(folder, 2, built)


@pytest.mark.slow
def test_removed_documents_are_not_found_after_an_extension(start: Start) -> None:
    folder = start("IVF4,Flat")
    with Writer(folder) as writer:
        writer.remove(range(1, 11))
    add(folder, DOCUMENTS[60:80])
    assert refresh(folder, "IVF4,Flat")[0].startswith("adding")
    assert_covers_all(folder, 2, "IVF4,Flat")
    with Index.open(folder, encoder=FakeEncoder()) as index:
        assert index.n_documents == 70
        assert "doc003" not in [hit.doc_id for hit in index.search(DOCUMENTS[3], Request(k=70, with_itself=True)).hits]


@pytest.mark.slow
def test_a_damaged_generation_is_rebuilt(start: Start, flip_byte: Callable[[Path, int], None]) -> None:
    folder = start("IVF4,Flat")
    add(folder, DOCUMENTS[60:80])
    flip_byte(folder / "ann" / "000001" / "chunks.faiss", 100)
    logged = refresh(folder, "IVF4,Flat")
    assert logged[1].startswith("rebuilding: ") and "has checksum" in logged[1]
    assert logged[2].startswith("building IVF4,Flat over ")
    assert_covers_all(folder, 2, "IVF4,Flat")


@pytest.mark.slow
def test_a_recall_under_the_floor_is_refused_after_a_rebuild_and_the_old_generation_stays(start: Start) -> None:
    folder = start("IVF4,Flat")
    add(folder, DOCUMENTS[60:80])
    logged: list[str] = []
    with pytest.raises(RecallTooLow), Writer(folder) as writer:
        refresh_generation(writer, "IVF4,Flat", log=logged.append, recall_floor=1.5)
    adding, _, rebuilding, building, _ = logged
    assert adding.startswith("adding") and rebuilding.startswith("rebuilding: document recall@10 is ")
    assert building.startswith("building IVF4,Flat over ")
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.generation_row is not None and snapshot.generation_row.id == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"n_fresh": 0}, False),
        ({"n_fresh": 100}, True),  # doubled
        ({"n_fresh": 101}, False),
        ({"n_covered": 50}, True),  # half of its vectors are removed
        ({"n_covered": 49}, False),
        ({"n_trained": 54}, False),
        ({"factory": "IVF64,PQ8x4fs"}, True),
        ({"factory": "IVF64,PQ16x4fs"}, False),
        ({"factory": "Flat"}, False),
    ],
)
def test_a_generation_is_extended_only_by_what_it_was_trained_for(change: dict[str, int | str], expected: bool) -> None:
    state = GenerationState("IVF32,PQ8x4fs", n_vectors=100, n_trained=100, n_covered=90, n_fresh=10)
    changed = replace(state, **change)  # type: ignore[arg-type]
    assert changed.takes_in("auto", "IVF128,PQ8x4fs") is expected
    assert not changed.takes_in("IVF128,PQ8x4fs", "IVF128,PQ8x4fs")
    assert changed.takes_in(changed.factory, changed.factory) is (expected or "factory" in change)


def fill(folder: Path, documents: list[Document], n_batches: int) -> None:
    """Commit the documents in batches; each batch becomes a shard."""
    encoder = FakeEncoder()
    with Writer(folder) as writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        size = -(-len(documents) // n_batches)
        for first in range(0, len(documents), size):
            batch = documents[first : first + size]
            writer.commit(list(zip(batch, encoder.encode(batch), strict=True)))


def shards(folder: Path) -> dict[int, int]:
    """The number of live chunks of each shard."""
    with IndexSnapshot(folder) as snapshot:
        locations = snapshot.locations
        numbers = sorted(set(locations.shard.tolist()))
        return {number: int(locations.n_chunks[locations.shard == number].sum()) for number in numbers}


def answers(folder: Path, doc_ids: list[str]) -> list[list[tuple[str, float]]]:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        return [[(hit.doc_id, hit.score) for hit in index.search(doc_id, Request(k=5)).hits] for doc_id in doc_ids]


def join(folder: Path) -> list[str]:
    logged: list[str] = []
    with Writer(folder) as writer:
        join_small_shards(writer, logged.append)
    return logged


@pytest.fixture
def corpus() -> list[Document]:
    return make_corpus(24)


@pytest.fixture
def folder(tmp_path: Path, corpus: list[Document]) -> Iterator[Path]:
    fill(tmp_path / "x.lm", corpus, 12)
    return tmp_path / "x.lm"


def test_many_small_shards_become_one_and_hits_stay(folder: Path, corpus: list[Document]) -> None:
    names = [document.doc_id for document in corpus[::5]]
    before, n_chunks = answers(folder, names), sum(shards(folder).values())
    assert len(shards(folder)) == 12
    assert join(folder) == ["joining 12 shards"]
    assert list(shards(folder).values()) == [n_chunks]
    assert answers(folder, names) == before
    assert len(list((folder / "shards").iterdir())) == 1


def test_joined_shards_keep_the_limit_and_large_shards_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = list(shards(folder).values())
    most = 2 * max(sizes)
    monkeypatch.setattr(generations, "SHARD_CHUNKS", most)
    monkeypatch.setattr(generations, "_GROUPS_AT_ONCE", 2)
    join(folder)
    after = shards(folder)
    assert 12 / 2 <= len(after) < 12 and max(after.values()) <= most and sum(after.values()) == sum(sizes)
    large = {number for number, n_chunks in after.items() if n_chunks > most // 2}
    assert large
    join(folder)
    assert large <= shards(folder).keys(), "what is large enough is not written again"


@pytest.mark.slow
def test_few_small_shards_are_left_until_there_are_many(folder: Path, corpus: list[Document]) -> None:
    join(folder)
    for number in range(generations.MANY_SHARDS - 2):
        fill(folder, [make_corpus(40)[30 + number]], 1)
        assert join(folder) == []
    fill(folder, [make_corpus(40)[39]], 1)
    assert join(folder) == [f"joining {generations.MANY_SHARDS} shards"]
    assert len(shards(folder)) == 1


def test_nothing_is_joined_where_there_is_no_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Mock(free=1000))
    assert join(folder) == []
    assert len(shards(folder)) == 12


def test_shards_without_a_document_are_deleted(folder: Path, corpus: list[Document]) -> None:
    with Writer(folder) as writer:
        known = writer.indexed([document.doc_id for document in corpus[:4]])
        writer.remove([one.id for one in known.values()])
    join(folder)
    assert len(shards(folder)) == len(list((folder / "shards").iterdir())) == 1
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.n_documents == 20


def test_compaction_rewrites_only_shards_with_removed_documents(folder: Path, corpus: list[Document]) -> None:
    join(folder)
    assert compact(folder).n_shards_after == 1
    (before,) = shards(folder)
    compact(folder)
    assert list(shards(folder)) == [before], "a whole shard is not written again"
    with Writer(folder) as writer:
        writer.remove([writer.indexed([corpus[0].doc_id])[corpus[0].doc_id].id])
    report = compact(folder)
    assert list(shards(folder)) != [before] and report.bytes_after < report.bytes_before


def test_a_run_joins_the_small_shards_of_its_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.building.pipeline.BATCH_CHARS", 200)
    logged: list[str] = []
    report = build(tmp_path / "x.lm", make_corpus(24), encoder=FakeEncoder(), log=logged.append)
    assert report.n_added == 24 and any(line.startswith("joining") for line in logged)
    assert len(shards(tmp_path / "x.lm")) == 1
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.generation_row is not None and snapshot.generation_row.n_vectors == snapshot.n_chunks
