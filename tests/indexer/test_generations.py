"""A generation is published when it is needed, and only if its recall reaches the floor."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import indexer.generation.generations as generation_module
import indexer.generation.generations as recall_module
from engine.errors import RecallTooLow
from engine.store.catalog import NamedRow
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.generations import is_outgrown, needs_generation, publish_generation
from tests.fakes import FakeEncoder, make_corpus


@pytest.fixture(autouse=True)
def few_queries_measure_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation_module, "RECALL_QUERIES", 12)  # each is searched with for every nprobe


@pytest.fixture
def folder(built_folder: Path, tmp_path: Path) -> Path:
    """A copy of sixty documents under a Flat generation."""
    return Path(shutil.copytree(built_folder, tmp_path / "x.lm"))


def row_of(folder: Path) -> NamedRow:
    with IndexSnapshot(folder) as snapshot:
        row = snapshot.generation_row
        assert row is not None
        assert snapshot.generation is not None  # its file is the recorded one
        return row


def published(folder: Path) -> tuple[int, str, float]:
    row = row_of(folder)
    return row.id, row.factory, row.recall


def publish(folder: Path, factory: str, recall_floor: float = 0.95) -> NamedRow:
    """The row of a new generation."""
    with Writer(folder) as writer:
        publish_generation(writer, factory, recall_floor=recall_floor)
    return row_of(folder)


def test_a_flat_generation_and_one_of_float16_are_exact_and_cover_every_chunk(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.generation.is_exact
        assert snapshot.generation.ann.n_vectors == snapshot.n_chunks
        assert not snapshot.is_fresh(snapshot.generation.through_chunk).any()
        vectors, _ = snapshot.chunk_vectors(np.arange(snapshot.n_documents))
        ids, similarities = snapshot.generation.ann.search(vectors[:50], 1)
    assert ids[:, 0].tolist() == list(range(1, 51))
    np.testing.assert_allclose(similarities[:, 0], (vectors[:50] ** 2).sum(1), atol=1e-6)
    assert publish(folder, "SQfp16").is_exact


@pytest.mark.slow
def test_a_new_generation_takes_the_place_of_the_old_one(folder: Path) -> None:
    made = publish(folder, "IVF4,Flat")
    assert (made.id, made.factory, made.nprobe, made.recall, made.is_exact) == (2, "IVF4,Flat", 4, 1.0, 0)
    assert published(folder) == (2, "IVF4,Flat", 1.0)
    assert [path.name for path in (folder / "ann").iterdir()] == ["000002"]


@pytest.mark.slow
def test_a_recall_under_the_floor_is_refused_and_the_old_generation_stays(folder: Path) -> None:
    with pytest.raises(RecallTooLow) as raised:
        publish(folder, "IVF4,Flat", recall_floor=1.01)
    assert str(raised.value) == (
        "document recall@10 is 1.000 at best, under the floor of 1.01; nothing was published: "
        "use --factory auto, or codes with more bits"
    )
    assert published(folder) == (1, "Flat", 1.0)
    Writer(folder).close()
    assert [path.name for path in (folder / "ann").iterdir()] == ["000001"]


@pytest.mark.slow
def test_nprobe_is_raised_until_the_floor_is_reached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_module, "_FIRST_NPROBE", 1)
    monkeypatch.setattr("engine.search.partition.TIERS", ((10, 13),))
    monkeypatch.setattr("engine.store.postings.LEFT_OUT", 0.0)  # so that lists alone can miss a document
    logged: list[str] = []
    with Writer(folder) as writer:
        publish_generation(writer, "IVF16,Flat", recall_floor=0.9999, log=logged.append)
    made = row_of(folder)
    assert made.nprobe > 1
    assert made.recall >= 0.9999
    recalls = [float(line.split("recall@10 ")[1].split()[0]) for line in logged if "recall@10" in line]
    assert len(recalls) > 1
    assert recalls[0] < recalls[-1]


def test_small_blocks_hold_the_same_vectors(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        (whole,) = snapshot.chunk_blocks(np.arange(60), 10**6)
        small = list(snapshot.chunk_blocks(np.arange(60), 20))
    assert len(small) > 10 and max(len(ids) for ids, _ in small) <= 40
    assert np.array_equal(np.concatenate([ids for ids, _ in small]), whole[0])
    assert np.array_equal(np.concatenate([rows for _, rows in small]), whole[1])


@pytest.mark.parametrize(("factory", "expected"), [("auto", False), ("Flat", False), ("SQ8", True)])
def test_another_factory_calls_for_a_generation(folder: Path, factory: str, expected: bool) -> None:
    with IndexSnapshot(folder) as snapshot:
        assert needs_generation(snapshot, factory) is expected


def _add(folder: Path, documents: list[Document]) -> None:
    with Writer(folder) as writer:
        writer.commit(list(zip(documents, FakeEncoder().encode(documents), strict=True)))


def needs_one(folder: Path) -> bool:
    with IndexSnapshot(folder) as snapshot:
        return needs_generation(snapshot, "auto")


def test_fresh_chunks_call_for_a_generation_when_they_are_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation_module, "FRESH_CHUNKS", 20)
    _add(folder, [make_corpus(70)[61]])
    assert not needs_one(folder)
    _add(folder, make_corpus(70)[60:])
    assert needs_one(folder)


@pytest.mark.parametrize(
    ("n_covered", "n_fresh", "expected"),
    [
        (0, 5_000, False),
        (100_000, 5_001, True),
        (1_000_000, 10_000, False),
        (1_000_000, 10_001, True),
        (10_000_000, 20_000, False),
        (10_000_000, 20_001, True),
    ],
)
def test_a_generation_is_outgrown_when_too_many_chunks_are_fresh(n_covered: int, n_fresh: int, expected: bool) -> None:
    assert is_outgrown(n_covered, n_covered, n_fresh) is expected


def test_removed_chunks_call_for_a_generation_when_they_are_most(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation_module, "FRESH_CHUNKS", 10)
    for removed, expected in ((range(1, 21), False), (range(21, 41), True)):
        with Writer(folder) as writer:
            writer.remove(removed)
        assert needs_one(folder) is expected


def test_an_index_without_a_document_needs_no_generation(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", [], encoder=FakeEncoder())
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert not needs_generation(snapshot, "auto")
        assert snapshot.generation is None
