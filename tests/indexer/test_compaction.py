"""Small shards are joined, and shards with removed documents are rewritten."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from engine.index import Index
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation import generations
from indexer.generation.generations import compact, join_small_shards
from tests.fakes import FakeEncoder, make_corpus


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
