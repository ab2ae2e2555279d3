from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.speed.growth.neighbours import neighbours
from benchmarks.speed.growth.source import Source
from benchmarks.speed.growth.stream import TURNS, Growth, Planes, calibrate, learn_growth, principal_planes, turned
from engine.encoders.encoder import Vectors, unit
from engine.errors import IndexMismatch


@pytest.fixture
def growth(source: Source) -> Growth:
    return learn_growth(source.part(np.arange(40)), turn=1.2)


def test_first_come_the_real_documents_themselves_and_no_document_too_many(growth: Growth) -> None:
    sizes = growth.source.n_chunks[growth.order(500).originals]
    assert sizes.sum() >= 500 > sizes[:-1].sum()
    order = growth.order(int(growth.source.n_chunks.sum()) + 1)
    assert order.copies.tolist() == [0] * 40 + [1]
    assert sorted(order.originals[:40].tolist()) == list(range(40)) != order.originals[:40].tolist()
    real = next(growth.blocks(order))
    np.testing.assert_array_equal(real.chunks, growth.source.read(order.originals[:40]).chunks)


def test_a_stream_does_not_depend_on_its_blocks_or_on_where_it_is_resumed(growth: Growth) -> None:
    whole = np.concatenate([block.chunks for block in growth.blocks(growth.order(600))])
    order = growth.order(450)
    cut = [block.chunks for block in growth.blocks(order, block_chunks=50)]
    n_first = int(growth.source.n_chunks[order.originals[:70]].sum())
    later = np.concatenate([block.chunks for block in growth.blocks(order, first=70)])
    assert len(cut) > 5
    np.testing.assert_allclose(np.concatenate(cut), whole[: sum(map(len, cut))], atol=1e-6)
    np.testing.assert_allclose(later, whole[n_first : n_first + len(later)], atol=1e-6)


def test_a_copy_keeps_the_similarities_within_its_original_but_lies_elsewhere(growth: Growth) -> None:
    order = growth.order(2 * int(growth.source.n_chunks.sum()))
    copy = list(growth.blocks(order))[1]
    original = growth.source.read(copy.originals)
    rows = slice(copy.starts[5], copy.starts[6])
    np.testing.assert_allclose(
        copy.chunks[rows] @ copy.documents[5], original.chunks[rows] @ original.documents[5], atol=1e-5
    )
    np.testing.assert_array_equal(copy.spans, original.spans)
    assert (np.sum(copy.chunks * original.chunks, axis=1) < 0.99).mean() > 0.9
    np.testing.assert_allclose(np.linalg.norm(copy.sections, axis=1), 1, atol=1e-3)


def test_each_copy_has_rare_terms_of_its_own(growth: Growth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.speed.growth.stream._RARE", 0.05)  # a sixth of all words are "part"
    order = growth.order(3 * int(growth.source.n_chunks.sum()))
    real, *made = growth.blocks(order)
    own = growth.words(real).words
    np.testing.assert_array_equal(own.terms, growth.source.words(real.originals).words.terms)
    copies = [growth.words(block) for block in made]
    terms = [set(np.concatenate([one.words.terms, one.pairs.terms]).tolist()) for one in copies]
    common = set(own.terms.tolist()).intersection(*terms)
    assert len(common) < 0.2 * len(set(own.terms.tolist()))
    for one, block in zip(copies, made, strict=True):
        counts = growth.source.words(block.originals).words
        np.testing.assert_array_equal(one.words.lengths(), counts.lengths())
        rises = np.diff(one.words.terms.astype(np.int64)) > 0
        assert rises[np.diff(one.words.rows()) == 0].all()


def test_another_seed_or_turn_is_another_stream(growth: Growth) -> None:
    order = growth.order(400)

    def last(one: Growth) -> float:
        *_, block = one.blocks(order)
        return float(block.chunks[-1, 0])

    assert last(growth) == last(replace(growth)) != last(replace(growth, seed=1))
    assert last(growth) != last(replace(growth, turn=0.5))


@pytest.fixture
def rows() -> Vectors:
    rng = np.random.default_rng(0)
    return unit((rng.standard_normal((50, 8)) / np.arange(1, 9) + [1, 0, 0, 0, 0, 0, 0, 1]).astype(np.float32))


def turned_by_hand(rows: Vectors, planes: Planes, angles: NDArray[np.float64]) -> Vectors:
    """One plane at a time, by its rotation matrix."""
    for plane, angle in enumerate(angles):
        two = planes.basis[:, 2 * plane : 2 * plane + 2]
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        rows = rows - rows @ two @ two.T + rows @ two @ turn @ two.T
    return rows


def test_planes_are_orthonormal_and_leave_the_mean_direction_out(rows: Vectors) -> None:
    planes = principal_planes(rows)
    mean = rows.mean(0) / np.linalg.norm(rows.mean(0))
    np.testing.assert_allclose(planes.basis.T @ planes.basis, np.eye(8), atol=1e-5)
    assert abs(planes.basis[:, -1] @ mean) == pytest.approx(1, abs=1e-5)
    variances = (rows @ planes.basis[:, :-1]).var(0)
    assert (np.diff(variances) < 1e-6).all() and planes.n == 3


def test_each_document_turns_by_its_own_angles(rows: Vectors) -> None:
    planes, counts = principal_planes(rows), np.array([20, 30])
    angles = np.random.default_rng(1).standard_normal((2, planes.n))
    by_hand = [turned_by_hand(part, planes, angle) for part, angle in zip((rows[:20], rows[20:]), angles, strict=True)]
    np.testing.assert_allclose(turned(rows, planes, angles, counts), np.concatenate(by_hand), atol=1e-5)


def test_a_turn_keeps_lengths_similarities_and_what_lies_along_the_mean(rows: Vectors) -> None:
    planes = principal_planes(rows)
    moved = turned(rows, planes, np.full((1, planes.n), 2.0), np.array([50]))
    np.testing.assert_allclose(moved @ moved.T, rows @ rows.T, atol=1e-5)
    np.testing.assert_allclose(moved @ planes.basis[:, -1], rows @ planes.basis[:, -1], atol=1e-5)
    assert np.abs(moved - rows).max() > 0.1


def test_a_quarter_grown_fourfold_has_neighbours_as_near_as_those_of_the_whole(source: Source) -> None:
    found = calibrate(source, seed=0)
    assert found.error == found.errors[str(found.turn)] == min(found.errors.values()) < 0.05
    assert found.errors[str(TURNS[0])] > 3 * found.error  # copies that hardly turn are too near each other
    assert found.grown.n_chunks == pytest.approx(found.real.n_chunks, abs=8)
    np.testing.assert_allclose(found.grown.within[1:], found.real.within[1:], atol=0.05)  # a turn leaves them alone


def test_neighbours_come_nearer_as_the_corpus_grows_but_not_at_once(source: Source) -> None:
    growth = learn_growth(source, turn=calibrate(source, seed=0).turn)
    n_chunks, chosen = int(source.n_chunks.sum()), np.arange(0, len(source), 4)
    medians = [
        neighbours(lambda size=size: growth.blocks(growth.order(size * n_chunks)), chosen, 0).nearest_chunk[2]  # type: ignore[misc]
        for size in (1, 2, 4)
    ]
    still = neighbours(lambda: replace(growth, turn=0.0).blocks(growth.order(2 * n_chunks)), chosen, 0).nearest_chunk
    assert medians[0] < medians[1] < medians[2] < 0.99
    assert still[2] > 0.999  # copies that do not turn stand on their originals


def test_too_few_documents_are_refused(source: Source) -> None:
    with pytest.raises(IndexMismatch, match="the index holds 15 documents, at least 16 are needed"):
        calibrate(source.part(np.arange(15)), 0)
