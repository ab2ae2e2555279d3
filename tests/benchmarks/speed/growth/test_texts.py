from __future__ import annotations

import numpy as np
import pytest

from benchmarks.speed.growth.texts import KEPT, KindModel, TextModel
from engine.words.counts import TermTable, WordTables

N, V = 200, 3_000


@pytest.fixture(scope="module")
def table() -> TermTable:
    """Documents in which term r stands with a probability of about 1 / r."""
    rng = np.random.default_rng(0)
    terms = np.sort(rng.choice(1 << 32, V, replace=False)).astype(np.uint32)
    shares = rng.permutation(np.minimum(0.9, 20 / np.arange(1, V + 1)))
    rows = [np.flatnonzero(rng.random(V) < shares) for _ in range(N)]
    counts = rng.geometric(0.5, sum(map(len, rows)))
    starts = np.cumsum([0, *map(len, rows)])
    lengths = np.add.reduceat(counts, starts[:-1]).astype(np.uint32)
    return TermTable(terms[np.concatenate(rows)], counts.astype(np.uint16), starts.astype(np.int64), lengths)


def keys_of(n: int, key: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return np.full(n, key, np.uint32)


def test_terms_stand_in_as_many_documents_as_in_the_corpus(table: TermTable) -> None:
    model = KindModel.learn(table)
    made = model.draw(np.arange(10 * N) % N, keys_of(10 * N, 0), np.random.default_rng(1))
    shares = np.bincount(np.searchsorted(model.terms, made.terms), minlength=len(model.terms)) / made.n_documents
    for least, most in ((0.5, 1.0), (0.1, 0.5), (0.02, 0.1), (0.0, 0.02)):
        of_kind = (model.shares > least) & (model.shares <= most)
        assert shares[of_kind].mean() == pytest.approx(model.shares[of_kind].mean(), rel=0.2)
    assert np.diff(made.starts).mean() == pytest.approx(np.diff(table.starts).mean(), rel=0.15)
    assert made.counts.mean() == pytest.approx(table.counts.mean(), rel=0.2)


def test_documents_of_one_template_have_much_in_common(table: TermTable) -> None:
    model = KindModel.learn(table)
    made = model.draw(np.array([3, 3, 4]), keys_of(3, 0), np.random.default_rng(2))
    one, same, other = (set(made.terms[made.starts[row] : made.starts[row + 1]].tolist()) for row in range(3))
    template = set(table.terms[table.starts[3] : table.starts[4]].tolist())
    assert len(one & template) >= 0.8 * KEPT * len(template)
    assert len(one & same) > len(one & other)


def test_half_of_the_rare_terms_are_renamed_by_a_key_alone(table: TermTable) -> None:
    model = KindModel.learn(table)
    templates = np.arange(N)
    plain, renamed = (model.draw(templates, keys_of(N, key), np.random.default_rng(3)) for key in (0, 0x5BD1E995))
    assert len(plain.terms) == len(renamed.terms)
    known = np.isin(renamed.terms, model.terms)
    rare = model.shares[np.searchsorted(model.terms, plain.terms)] < 0.01
    assert 0.35 < np.mean(~known) / rare.mean() < 0.65
    assert set(plain.terms.tolist()) <= set(model.terms.tolist())


def test_a_table_is_in_order_and_the_same_for_the_same_seed(table: TermTable) -> None:
    model = TextModel.learn("0123", WordTables(table, table))
    one, again, other = (model.draw(np.arange(30) + 190, keys_of(30, 9), [0, seed]) for seed in (1, 1, 2))
    rises = np.diff(one.words.terms.astype(np.int64)) > 0
    assert rises[np.diff(one.words.rows()) == 0].all()
    assert one.words.terms.tolist() == again.words.terms.tolist() != other.words.terms.tolist()
    assert one.words.terms.tolist() != one.pairs.terms.tolist()
