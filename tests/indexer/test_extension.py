"""New documents join the published generation, which is rebuilt only when it must be."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

import indexer.generation.generations as generation_module
from engine.errors import RecallTooLow
from engine.index import Index
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.generations import GenerationState, refresh_generation
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
