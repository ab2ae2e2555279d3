"""FAISS against a matrix product."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import Vectors, unit
from engine.errors import IndexDamaged, IndexMismatch
from engine.store.ann import AnnIndex, Ids, choose_factory, training_size
from engine.store.durable import Checksum

WIDTH = 16


@pytest.fixture(scope="module")
def rows() -> Vectors:
    return unit(np.random.default_rng(0).standard_normal((500, WIDTH)).astype(np.float32))


@pytest.fixture(scope="module")
def ids() -> Ids:
    return np.arange(500) * 7 + 3


def build(factory: str, rows: Vectors, ids: Ids) -> AnnIndex:
    return AnnIndex.build(factory, WIDTH, rows, [(ids[:200], rows[:200]), (ids[200:], rows[200:])])


@pytest.mark.parametrize("factory", ["Flat", "IDMap2,Flat", "IVF8,Flat"])
@pytest.mark.parametrize("n_queries", [1, 40])
def test_results_are_those_of_a_matrix_product_under_our_ids(
    rows: Vectors, ids: Ids, factory: str, n_queries: int
) -> None:
    index = build(factory, rows, ids)
    index.nprobe = 8
    queries = rows[:n_queries] + 0.05
    found, similarities = index.search(queries, 10)
    table = queries @ rows.T
    order = np.argsort(-table, axis=1)[:, :10]
    assert np.array_equal(found, ids[order])
    np.testing.assert_allclose(similarities, np.take_along_axis(table, order, axis=1), atol=1e-5)


@pytest.mark.parametrize("factory", ["SQ8", "IVF8,PQ8x4fs", "IVF8,SQ8", "PCA8,IVF8,Flat", "HNSW16", "RR16,IVF8,Flat"])
def test_other_factories_take_our_ids_and_find_most(rows: Vectors, ids: Ids, factory: str) -> None:
    index = build(factory, rows, ids)
    index.nprobe = 8
    found, _ = index.search(rows[:50], 20)
    assert np.mean([own in row for own, row in zip(ids, found.tolist(), strict=False)]) > 0.9


def test_nprobe_narrows_the_search(rows: Vectors, ids: Ids) -> None:
    index = build("IVF8,Flat", rows, ids)
    assert index.n_lists == 8
    index.nprobe = 1
    assert (index.search(rows[:20], 400)[0] == -1).any()
    index.nprobe = 8
    assert (index.search(rows[:20], 400)[0] >= 0).all()


def test_asking_for_more_than_there_is_gives_all(rows: Vectors, ids: Ids) -> None:
    assert sorted(build("Flat", rows, ids).search(rows[:1], 10_000)[0][0].tolist()) == ids.tolist()


@pytest.mark.parametrize("factory", ["Flat", "IVF8,Flat", "IVF8,PQ8x4fs"])
def test_an_index_written_and_opened_answers_the_same(rows: Vectors, ids: Ids, factory: str, tmp_path: Path) -> None:
    index = build(factory, rows, ids)
    index.nprobe = 4
    written = index.write(tmp_path / "i")
    opened = AnnIndex.open(tmp_path / "i", written, n_vectors=500, width=WIDTH, nprobe=4)
    ids_before, similarities_before = index.search(rows[:9], 5)
    ids_now, similarities_now = opened.search(rows[:9], 5)
    assert np.array_equal(ids_now, ids_before)
    assert np.array_equal(similarities_now, similarities_before)


def test_a_damaged_file_is_refused_before_faiss_parses_it(
    rows: Vectors, ids: Ids, tmp_path: Path, flip_byte: Callable[[Path, int], None]
) -> None:
    path = tmp_path / "i"
    written = build("Flat", rows, ids).write(path)
    for at in range(0, written.size_bytes, 997):
        flip_byte(path, at)
        with pytest.raises(IndexDamaged, match="has checksum"):
            AnnIndex.open(path, written, n_vectors=500, width=WIDTH, nprobe=0)
        flip_byte(path, at)


def test_what_is_no_faiss_index_is_damage_even_behind_its_checksum(tmp_path: Path) -> None:
    from engine.store.durable import checksum

    path = tmp_path / "i"
    path.write_bytes(b"no index at all")
    with pytest.raises(IndexDamaged, match="is no FAISS index"):
        AnnIndex.open(path, checksum(path), n_vectors=500, width=WIDTH, nprobe=0)


def test_another_count_or_width_is_damage(rows: Vectors, ids: Ids, tmp_path: Path) -> None:
    written: Checksum = build("Flat", rows, ids).write(tmp_path / "i")
    with pytest.raises(IndexDamaged) as raised:
        AnnIndex.open(tmp_path / "i", written, n_vectors=499, width=WIDTH, nprobe=0)
    assert str(raised.value) == (
        f"{tmp_path / 'i'} holds 500 vectors 16 wide, not 499 vectors 16 wide; mend it: longmatch repair INDEX"
    )


@pytest.mark.parametrize("factory", ["Flatt", "", "IVF1000,Flat", "IVF8,PQ7", "IVF8,Flat,Refine(Flat)"])
def test_a_factory_that_faiss_cannot_build_is_a_mismatch(rows: Vectors, ids: Ids, factory: str) -> None:
    with pytest.raises(IndexMismatch, match=r"^FAISS cannot build factory .* over 500 training vectors 16 wide \("):
        build(factory, rows, ids)


@pytest.mark.parametrize(
    ("n_vectors", "width", "factory"),
    [
        (0, 384, "Flat"),
        (50_000, 384, "Flat"),
        (50_001, 384, "IVF512,PQ192x4fs"),
        (1_000_000, 384, "IVF2048,PQ192x4fs"),
        (1_000_000, 7, "IVF2048,PQ1x4fs"),
    ],
)
def test_auto_searches_few_vectors_exactly_and_many_by_lists(n_vectors: int, width: int, factory: str) -> None:
    assert choose_factory(n_vectors, width) == factory


@pytest.mark.parametrize(
    ("factory", "size"),
    [("IVF1024,PQ64x4fs", 65_536), ("OPQ16,IVF4096,Flat", 262_144), ("IVF1024_HNSW32,Flat", 65_536), ("SQ8", 65_536)],
)
def test_training_takes_64_vectors_a_list(factory: str, size: int) -> None:
    assert training_size(factory) == size
