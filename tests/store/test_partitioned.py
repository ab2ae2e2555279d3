"""The snapshot of partitions shows the documents that a snapshot of one index shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import EncodedDocument
from engine.store.partitioned import PartitionedSnapshot, open_snapshot
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from tests.fakes import FakeEncoder, make_corpus

N = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half of the documents have vectors."""
    folder, documents = tmp_path_factory.mktemp("partitioned"), make_corpus(N)
    build(folder / "one.lm", documents[: N // 2], encoder=FakeEncoder())
    build(folder / "one.lm", documents, encode="none")
    partition(folder / "one.lm", folder / "x.parts", 3)
    return folder


@pytest.fixture
def one(folder: Path) -> Iterator[IndexSnapshot]:
    with open_snapshot(folder / "one.lm") as snapshot:
        assert type(snapshot) is IndexSnapshot
        yield snapshot


@pytest.fixture
def parts(folder: Path) -> Iterator[IndexSnapshot]:
    with open_snapshot(folder / "x.parts") as snapshot:
        assert type(snapshot) is PartitionedSnapshot
        yield snapshot


def positions(snapshot: IndexSnapshot, names: list[str]) -> np.ndarray:
    found = [snapshot.position(name) for name in names]
    return np.array(found, np.int64)


def shuffled() -> list[str]:
    return [f"doc{number:03d}" for number in np.random.default_rng(0).permutation(N)]


def test_names_texts_and_keys_are_those_of_one_index(one: IndexSnapshot, parts: IndexSnapshot) -> None:
    names = shuffled()
    mine, theirs = positions(parts, names), positions(one, names)
    assert sorted(parts.doc_ids()) == one.doc_ids()
    assert parts.doc_ids_of(mine) == names
    assert [document.text for document, _ in parts.documents(mine)] == [
        document.text for document, _ in one.documents(theirs)
    ]
    assert [coverage for _, coverage in parts.documents(mine)] == [coverage for _, coverage in one.documents(theirs)]
    np.testing.assert_array_equal(parts.content_keys(mine), one.content_keys(theirs))
    assert parts.content_hashes() == one.content_hashes()
    assert parts.chunk_counts() == one.chunk_counts()
    assert sorted(parts.titles()) == sorted(one.titles())
    assert set(parts.similar_names("doc00", 30)) == set(one.similar_names("doc00", 30))
    assert len(parts.similar_names("doc00", 2)) == 2


def test_vectors_words_and_spans_are_those_of_one_index(one: IndexSnapshot, parts: IndexSnapshot) -> None:
    names = shuffled()
    mine, theirs = positions(parts, names), positions(one, names)
    np.testing.assert_array_equal(parts.has_vectors[mine], one.has_vectors[theirs])
    np.testing.assert_array_equal(parts.tokens[mine], one.tokens[theirs])
    np.testing.assert_array_equal(parts.document_rows(mine), one.document_rows(theirs))
    for of_parts, of_one in zip(parts.chunk_vectors(mine), one.chunk_vectors(theirs), strict=True):
        np.testing.assert_array_equal(of_parts, of_one)
    for of_parts, of_one in zip(mine.tolist(), theirs.tolist(), strict=True):
        np.testing.assert_array_equal(parts.spans(of_parts), one.spans(of_one))
        np.testing.assert_array_equal(parts.section_vectors(of_parts), one.section_vectors(of_one))
    np.testing.assert_array_equal(parts.words(mine).words.counts, one.words(theirs).words.counts)
    np.testing.assert_array_equal(parts.words(mine).pairs.terms, one.words(theirs).pairs.terms)


def test_counts_and_filters_are_those_of_one_index(one: IndexSnapshot, parts: IndexSnapshot) -> None:
    names = shuffled()
    of_parts, of_one = parts.matching("family = 'even'"), one.matching("family = 'even'")
    np.testing.assert_array_equal(of_parts[positions(parts, names)], of_one[positions(one, names)])
    same = [name for name in one.totals() if name not in ("shards", "shard_bytes")]
    assert {name: parts.totals()[name] for name in same} == {name: one.totals()[name] for name in same}
    assert len(parts.shard_rows) == parts.totals()["shards"]


def test_a_reference_drawn_over_partitions_is_that_of_one_index(one: IndexSnapshot, parts: IndexSnapshot) -> None:
    of_parts, of_one = parts.draw_reference(7), one.draw_reference(7)
    np.testing.assert_array_equal(of_parts.hashes, of_one.hashes)
    np.testing.assert_array_equal(of_parts.vectors, of_one.vectors)
    for kind in ("words", "pairs"):
        mine, theirs = getattr(of_parts.statistics, kind), getattr(of_one.statistics, kind)
        np.testing.assert_array_equal(mine.terms, theirs.terms)
        np.testing.assert_array_equal(mine.counts, theirs.counts)
        assert mine.total == theirs.total
    np.testing.assert_array_equal(of_parts.common, of_one.common)
    assert parts.reference_row == one.reference_row


def test_attached_vectors_are_seen_in_their_partition(parts: IndexSnapshot) -> None:
    at = np.flatnonzero(~parts.has_vectors)[[5, 0, 3]]
    documents: list[Document] = [document for document, _ in parts.documents(at)]
    encoded: list[EncodedDocument] = FakeEncoder().encode(documents)
    parts.attach(at, encoded)
    assert parts.has_vectors[at].all()
    assert sum(int(part.has_vectors.sum()) for part in parts.parts) == N // 2 + 3
    vectors, starts = parts.chunk_vectors(at)
    np.testing.assert_array_equal(vectors, np.concatenate([one.chunks for one in encoded]).astype(np.float16))
    np.testing.assert_array_equal(starts, np.cumsum([0, *(len(one.chunks) for one in encoded)])[:-1])
    assert parts.tokens[at].tolist() == [one.coverage.tokens_total for one in encoded]
    assert parts.documents(at)[1][1] == encoded[1].coverage
