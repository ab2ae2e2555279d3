from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scaling.growth import Growth, learn_growth
from benchmarks.scaling.source import Source


@pytest.fixture
def growth(source: Source) -> Growth:
    return learn_growth(source.part(np.arange(40)), turn=1.2)


def test_first_come_the_real_documents_themselves(growth: Growth) -> None:
    order = growth.order(int(growth.source.n_chunks.sum()) + 1)
    assert order.copies.tolist() == [0] * 40 + [1]
    assert sorted(order.originals[:40].tolist()) == list(range(40)) != order.originals[:40].tolist()
    real = next(growth.blocks(order))
    np.testing.assert_array_equal(real.chunks, growth.source.read(order.originals[:40]).chunks)


def test_a_stream_holds_as_many_chunks_as_were_asked_and_no_document_more(growth: Growth) -> None:
    sizes = growth.source.n_chunks[growth.order(500).originals]
    assert sizes.sum() >= 500 > sizes[:-1].sum()


def test_a_stream_is_the_same_however_it_is_cut_and_gone_on_with(growth: Growth) -> None:
    whole = np.concatenate([block.chunks for block in growth.blocks(growth.order(600))])
    order = growth.order(450)
    cut = [block.chunks for block in growth.blocks(order, block_chunks=50)]
    n_first = int(growth.source.n_chunks[order.originals[:70]].sum())
    later = np.concatenate([block.chunks for block in growth.blocks(order, first=70)])
    assert len(cut) > 5
    np.testing.assert_allclose(np.concatenate(cut), whole[: sum(map(len, cut))], atol=1e-6)
    np.testing.assert_allclose(later, whole[n_first : n_first + len(later)], atol=1e-6)


def test_a_copy_is_inside_as_its_original_is_but_lies_elsewhere(growth: Growth) -> None:
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
    monkeypatch.setattr("benchmarks.scaling.growth._RARE", 0.05)  # of all words a sixth are "part"
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
