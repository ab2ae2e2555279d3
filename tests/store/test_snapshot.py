"""A snapshot stays as it was when it was opened, and its parts are checked before they are used."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import IndexDamaged, IndexMismatch
from engine.result import Status
from engine.search.query import Query
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.ann import AnnIndex
from engine.store.catalog import open_reader
from engine.store.durable import Checksum
from engine.store.partitioned import open_snapshot
from engine.store.snapshot import Documents, IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from engine.words.apart import ranges
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.generation.generations import compact
from indexer.generation.reference import rebase
from tests.fakes import FakeEncoder, make_corpus, make_document

DOCUMENTS = make_corpus(12)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve documents in four shards, with holes: one was removed, one replaced."""
    folder = tmp_path / "x.lm"
    encoder = FakeEncoder()
    with Writer(folder) as writer:
        writer.claim({"name": "fake", "fingerprint": "f" * 32, "width": 32})
        for first in range(0, 12, 4):
            batch = DOCUMENTS[first : first + 4]
            writer.commit(list(zip(batch, encoder.encode(batch), strict=True)))
        changed = make_document("doc005", [("new", "quite another text of some words")])
        writer.commit([(changed, encoder.encode([changed])[0])])
        writer.remove([3])
    return folder


def expected() -> list[Document]:
    kept = [document for document in DOCUMENTS if document.doc_id not in ("doc002", "doc005")]
    return [*kept, make_document("doc005", [("new", "quite another text of some words")])]


def test_vectors_and_spans_are_those_of_the_documents(folder: Path) -> None:
    documents = expected()
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.doc_ids() == [document.doc_id for document in documents]
        for position, one in enumerate(FakeEncoder().encode(documents)):
            vectors, starts = snapshot.chunk_vectors(np.array([position]))
            assert np.array_equal(vectors, one.chunks.astype(np.float16).astype(np.float32))
            assert starts.tolist() == [0]
            assert np.array_equal(snapshot.document_vectors[position], one.document.astype(np.float16))
            assert np.array_equal(snapshot.section_vectors(position), one.sections.astype(np.float16))
            spans = [[span.section, span.start, span.stop, span.n_tokens] for span in one.chunk_spans]
            assert snapshot.spans(position).tolist() == spans


@pytest.mark.slow
@given(st.lists(st.integers(0, 59), max_size=8))
def test_chunk_vectors_come_in_the_requested_order(built_folder: Path, positions: list[int]) -> None:
    with IndexSnapshot(built_folder) as snapshot:
        vectors, starts = snapshot.chunk_vectors(np.array(positions, np.int64))
        alone = [snapshot.chunk_vectors(np.array([position]))[0] for position in positions]
    assert np.array_equal(vectors, np.concatenate([np.empty((0, 32)), *alone]))
    assert starts.tolist() == [sum(map(len, alone[:number])) for number in range(len(alone))]


def test_chunk_ids_lead_to_their_documents_and_vectors(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        locations = snapshot.locations
        highest = int((locations.first_chunk + locations.n_chunks).max())
        owner = np.full(highest + 5, -1)
        for position in range(len(locations)):
            first = int(locations.first_chunk[position])
            owner[first : first + int(locations.n_chunks[position])] = position
        ids = np.arange(-1, highest + 4)
        assert snapshot.documents_of_chunks(ids).tolist() == [-1, *owner[:-1].tolist()]
        real = np.flatnonzero(owner >= 0)[::-1]
        found = snapshot.chunks_by_id(real, owner[real])
        for chunk, vector in zip(real, found, strict=True):
            own, _ = snapshot.chunk_vectors(np.array([owner[chunk]]))
            assert np.array_equal(vector, own[chunk - locations.first_chunk[owner[chunk]]])


def test_a_reader_is_pinned_while_a_writer_replaces_and_removes(folder: Path) -> None:
    before = expected()
    with IndexSnapshot(folder) as snapshot:
        with Writer(folder) as writer:
            changed = make_document("doc000", "new text")
            writer.commit([(changed, FakeEncoder().encode([changed])[0])])
            writer.remove([position for position in [number for number, _ in writer.sources()] if position > 4])
        with IndexSnapshot(folder) as now:
            assert now.doc_ids() == ["doc001", "doc003"]
        positions = np.arange(len(before))
        assert [document.text for document, _ in snapshot.documents(positions)] == [one.text for one in before]
        assert snapshot.position("doc000") == 0
        assert snapshot.matching("year >= 0").sum() == len(before) - 1
        vectors, _ = snapshot.chunk_vectors(positions)
        encoded = FakeEncoder().encode(before)
        assert np.array_equal(vectors, np.concatenate([one.chunks for one in encoded]).astype(np.float16))


@pytest.mark.slow
@pytest.mark.parametrize("is_used_before", [True, False])
def test_a_reader_keeps_working_when_its_generation_is_superseded(tmp_path: Path, is_used_before: bool) -> None:
    folder = tmp_path / "x.lm"
    build(folder, DOCUMENTS, encoder=FakeEncoder(), factory="Flat")
    query = Query(DOCUMENTS[4], FakeEncoder().encode(DOCUMENTS[4:5])[0])
    with IndexSnapshot(folder) as snapshot:
        before = Searcher(snapshot).search(query, Request(exact=True))
        if is_used_before:
            assert snapshot.generation is not None
        build(folder, DOCUMENTS[:2], encoder=FakeEncoder(), factory="SQ8", recall_floor=0.5, prune=True)
        after = Searcher(snapshot).search(query)
    assert after.status is Status.CERTIFIED
    assert [hit.doc_id for hit in after.hits] == [hit.doc_id for hit in before.hits]


def test_a_generation_may_go_at_the_moment_in_which_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x.lm"
    build(folder, DOCUMENTS, encoder=FakeEncoder(), factory="Flat")
    query = Query(DOCUMENTS[4], FakeEncoder().encode(DOCUMENTS[4:5])[0])
    opened = AnnIndex.open

    def racing(path: Path, written: Checksum, *, n_vectors: int, width: int, nprobe: int) -> AnnIndex:
        monkeypatch.undo()
        build(folder, DOCUMENTS[:2], encoder=FakeEncoder(), factory="SQ8", recall_floor=0.5, prune=True)
        assert not path.exists()
        return opened(path, written, n_vectors=n_vectors, width=width, nprobe=nprobe)

    with IndexSnapshot(folder) as snapshot:
        before = Searcher(snapshot).search(query, Request(exact=True))
        monkeypatch.setattr(AnnIndex, "open", racing)
        after = Searcher(snapshot).search(query)
        assert snapshot.generation is None
    assert [(hit.doc_id, hit.score) for hit in after.hits] == [(hit.doc_id, hit.score) for hit in before.hits]


def test_a_reader_keeps_working_when_the_index_is_compacted(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        compact(folder)
        vectors, _ = snapshot.chunk_vectors(np.arange(snapshot.n_documents))
    encoded = FakeEncoder().encode(expected())
    assert np.array_equal(vectors, np.concatenate([one.chunks for one in encoded]).astype(np.float16))


READ: dict[str, Callable[[IndexSnapshot], object]] = {
    "chunks": lambda snapshot: snapshot.chunk_vectors(np.array([4])),
    "single chunks": lambda snapshot: snapshot.chunks_by_id(snapshot.locations.first_chunk[[4]], np.array([4])),
    "spans": lambda snapshot: snapshot.spans(4),
    "sections": lambda snapshot: snapshot.section_vectors(4),
    "documents": lambda snapshot: snapshot.document_vectors,
    "words": lambda snapshot: snapshot.words(np.array([4])),
    "words apart": lambda snapshot: snapshot.words(np.array([4]), apart=True),
}


def found_damaged(folder: Path) -> set[str]:
    """The data of a document of the second shard that cannot be read; the first shard can be read."""
    damaged = set()
    for name, read in READ.items():
        with IndexSnapshot(folder) as snapshot:
            snapshot.chunk_vectors(np.array([0]))
            try:
                read(snapshot)
            except IndexDamaged as error:
                assert re.search(r"000002\.safetensors has checksum .*; repair it: longmatch upkeep", str(error))
                damaged.add(name)
    return damaged


@pytest.mark.slow
def test_a_damaged_part_of_a_shard_is_found_before_it_is_read(
    folder: Path, flip_byte: Callable[[Path, int], None]
) -> None:
    path = folder / "shards" / "000002.safetensors"
    header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    kinds: set[frozenset[str]] = set()
    for at in [0, 8, 100, header - 1, *range(header, path.stat().st_size, 97), path.stat().st_size - 1]:
        flip_byte(path, at)
        damaged = found_damaged(folder)
        assert damaged == set(READ) if at < header else damaged
        kinds.add(frozenset(damaged))
        flip_byte(path, at)
    assert found_damaged(folder) == set()
    one_tensor = [{"documents"}, {"sections"}, {"spans"}, {"chunks", "single chunks"}, {"words", "words apart"}]
    one_tensor.append({"words apart"})  # searches that skip no kind do not read it
    assert kinds == {frozenset(READ), *map(frozenset, one_tensor)}


def test_a_cut_or_missing_shard_is_found(folder: Path) -> None:
    path = folder / "shards" / "000001.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with IndexSnapshot(folder) as snapshot, pytest.raises(IndexDamaged, match="bytes, not"):
        snapshot.spans(0)
    path.unlink()
    with IndexSnapshot(folder) as snapshot, pytest.raises(IndexDamaged, match="is missing, unreadable or empty"):
        snapshot.spans(0)


@pytest.mark.parametrize("damage", ["has checksum", "cannot be read"])
def test_a_generation_that_is_damaged_or_gone_is_found_before_faiss_parses_it(
    tmp_path: Path, flip_byte: Callable[[Path, int], None], damage: str
) -> None:
    build(tmp_path / "x.lm", DOCUMENTS, encoder=FakeEncoder(), factory="Flat")
    path = tmp_path / "x.lm" / "ann" / "000001" / "chunks.faiss"
    flip_byte(path, 40) if damage == "has checksum" else path.unlink()
    with IndexSnapshot(tmp_path / "x.lm") as snapshot, pytest.raises(IndexDamaged, match=rf"chunks\.faiss {damage}"):
        assert snapshot.generation


def test_a_catalog_that_was_cut_is_refused_on_opening(folder: Path) -> None:
    catalog = folder / "catalog.sqlite"
    catalog.write_bytes(catalog.read_bytes()[:-4096])
    with pytest.raises(IndexDamaged, match=r"catalog\.sqlite .*malformed"):
        IndexSnapshot(folder)


def read_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that statements name from now on."""
    names: list[str] = []

    def traced(path: Path) -> sqlite3.Connection:
        connection = open_reader(path)
        connection.set_trace_callback(lambda statement: names.extend(re.findall(r"FROM (\w+)", statement)))
        return connection

    monkeypatch.setattr("engine.store.snapshot.open_reader", traced)
    return names


def test_opening_reads_no_document(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = read_names(monkeypatch)
    with IndexSnapshot(folder) as snapshot:
        opened = set(names)
        assert opened & {"documents", "document_checks", "texts", "sections", "location_blocks", "failures"} == set()
        assert opened >= {"meta", "shards", "generations"}
        snapshot.chunk_vectors(np.array([0]))
        assert set(names) - opened == {"location_blocks"}
        assert snapshot.doc_ids_of(np.array([4])) == ["doc006"]
        assert snapshot.position("doc006") == 4 and snapshot.position("none") is None
        assert set(names) - opened == {"location_blocks", "documents"}
        # Closing another handle of the file would end the locks under which the open transaction reads.
        assert snapshot.matching("year >= 0").shape == (11,)


def test_all_rows_are_checked_once_and_documents_are_read_after_the_index_is_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = read_names(monkeypatch)
    with IndexSnapshot(folder) as snapshot:
        assert len(snapshot.doc_ids()) == len(snapshot.titles()) == 11
    assert names.count("document_checks") == 2  # their sum, and each
    with IndexSnapshot(folder) as snapshot:
        found = snapshot.documents(np.arange(11))
    assert [document for document, _ in found] == expected()


@pytest.mark.parametrize(
    ("is_begun", "message"), [(False, "holds no index; make one"), (True, "was begun but holds nothing yet; fill it")]
)
def test_the_error_for_a_folder_without_documents_has_the_next_command(
    tmp_path: Path, is_begun: bool, message: str
) -> None:
    folder = tmp_path / "x.lm"
    if is_begun:
        Writer(folder).close()
    with pytest.raises(IndexMismatch) as raised:
        IndexSnapshot(folder)
    assert str(raised.value) == f"{folder} {message}: longmatch index {folder} PATH..."


def test_a_name_is_looked_up_once_and_similar_ones_are_literal(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.similar_names("c01") == ["doc010", "doc011"]
        assert snapshot.similar_names("d%c") == snapshot.similar_names("doc_00") == []
        assert snapshot.similar_names("") == snapshot.similar_names("d") == []
    with IndexSnapshot(folder) as snapshot:
        assert (snapshot.position("doc004"), snapshot.position("none"), snapshot.position("doc004")) == (3, None, 3)
        snapshot.position("doc001")
        snapshot.close()
        assert snapshot.position("doc001") == 1


def test_totals_add_up(folder: Path) -> None:
    encoded = FakeEncoder().encode(expected())
    with IndexSnapshot(folder) as snapshot:
        totals = snapshot.totals()
    n_tokens = sum(one.coverage.tokens_read for one in encoded)
    shards = list((folder / "shards").iterdir())
    assert totals == {
        "documents": 11,
        "encoded": 11,
        "sections": sum(len(one.sections) for one in encoded),
        "chunks": sum(len(one.chunks) for one in encoded),
        "tokens_read": n_tokens,
        "tokens_total": n_tokens,
        "shards": 4,
        "shard_bytes": sum(path.stat().st_size for path in shards),
        "failures": 0,
    }


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=10))
def test_ranges_equals_a_loop(pairs: list[tuple[int, int]]) -> None:
    starts, counts = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    by_hand = [start + number for start, count in pairs for number in range(count)]
    assert ranges(starts, counts).tolist() == by_hand


@pytest.mark.parametrize("kept", [[], [0], [3, 4, 7], list(range(11))])
def test_the_chunks_of_documents_are_those_of_a_loop(folder: Path, kept: list[int]) -> None:
    with IndexSnapshot(folder) as snapshot:
        documents = np.isin(np.arange(11), kept)
        locations = snapshot.locations
        by_hand = [
            chunk
            for position in kept
            for chunk in range(
                locations.first_chunk[position], locations.first_chunk[position] + locations.n_chunks[position]
            )
        ]
        assert np.flatnonzero(snapshot.chunks_of(documents)).tolist() == sorted(by_hand)


@pytest.mark.slow
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_a_reader_that_meets_a_new_reference_while_it_opens_opens_again(
    n_partitions: int, built_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition(built_folder, tmp_path / "x.lm", n_partitions)
    mapped, n_calls = Documents._map_reference, 0

    def racing(snapshot: Documents) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == n_partitions + (n_partitions > 1):  # the last one: of the whole
            rebase(tmp_path / "x.lm")
        mapped(snapshot)

    monkeypatch.setattr(Documents, "_map_reference", racing)
    with open_snapshot(tmp_path / "x.lm") as snapshot:
        assert n_calls > n_partitions + 1
        assert snapshot.reference.version == snapshot.reference_row.version == 2
