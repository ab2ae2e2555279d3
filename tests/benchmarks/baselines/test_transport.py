from __future__ import annotations

import numpy as np
import pytest

from benchmarks.baselines.transport import Ground, Lowest, Mass, costs, mass_of, relaxed, transport
from benchmarks.baselines.word_bags import WordBag

pytest.importorskip("ot")

RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((30, 3)).astype(np.float32)
GROUNDS = {
    "distance": Ground(POINTS, np.ones(30), lambda distance: distance, 20.0),
    "square": Ground(POINTS, RNG.uniform(0.5, 2, 30), lambda distance: distance**2 / 2, 200.0),
}


def random_mass(ground: Ground, n_words: int) -> Mass:
    rows = np.sort(RNG.choice(30, n_words, replace=False))
    return mass_of(WordBag(rows, RNG.integers(1, 5, n_words)), ground, None)


def test_mass_is_count_times_weight() -> None:
    ground = Ground(POINTS, np.arange(1.0, 31.0), lambda distance: distance, 20.0)
    mass = mass_of(WordBag(np.array([0, 3]), np.array([2, 1])), ground, None)
    np.testing.assert_allclose(mass.shares, [2 / 6, 4 / 6])


def test_the_heaviest_words_are_kept_and_of_equal_ones_the_first() -> None:
    bag = WordBag(np.array([2, 4, 6, 8]), np.array([1, 3, 1, 2]))
    mass = mass_of(bag, GROUNDS["distance"], 3)
    assert mass.rows.tolist() == [2, 4, 8]
    np.testing.assert_allclose(mass.shares, [1 / 6, 3 / 6, 2 / 6])


def test_moving_onto_itself_costs_nothing_and_both_ways_cost_the_same() -> None:
    ground = GROUNDS["distance"]
    one, other = random_mass(ground, 9), random_mass(ground, 7)
    assert transport(costs(ground, one, one), one, one) == pytest.approx(0, abs=1e-7)
    there, back = (transport(costs(ground, a, b), a, b) for a, b in ((one, other), (other, one)))
    assert there == pytest.approx(back)


@pytest.mark.parametrize("name", GROUNDS)
def test_no_bound_is_above_a_cost(name: str) -> None:
    ground = GROUNDS[name]
    masses = [random_mass(ground, int(RNG.integers(1, 20))) for _ in range(40)]
    lowest = Lowest(ground, masses)
    for query in masses[:10]:
        moves = [costs(ground, query, mass) for mass in masses]
        least = np.array([transport(own, query, mass) for own, mass in zip(moves, masses, strict=True)])
        halves = np.array([relaxed(own, query, mass) for own, mass in zip(moves, masses, strict=True)])
        assert (halves <= least + 1e-9).all()
        assert (lowest(query) <= least + 1e-7).all()
        assert lowest(query).sum() > 0.2 * least.sum()  # and they say something


@pytest.mark.parametrize("name", GROUNDS)
def test_bounds_of_a_corpus_equal_a_loop(name: str) -> None:
    ground = GROUNDS[name]
    empty = Mass(np.array([], np.int64), np.array([]))
    masses, query = [random_mass(ground, 5), empty, random_mass(ground, 8)], random_mass(ground, 6)
    by_hand = []
    for mass in (masses[0], masses[2]):
        centroids = [own.shares @ POINTS[own.rows].astype(np.float64) for own in (query, mass)]
        apart = float(ground.cost(np.linalg.norm(centroids[0] - centroids[1])[None])[0])
        nearest = 0.0
        for row, share in zip(mass.rows, mass.shares, strict=True):
            nearest += share * min(float(costs_by_hand(ground, row, other)) for other in query.rows)
        by_hand.append(max(apart, nearest))
    np.testing.assert_allclose(Lowest(ground, masses)(query)[[0, 2]], by_hand, rtol=1e-9)


def costs_by_hand(ground: Ground, row: int, other: int) -> float:
    return float(ground.cost(np.linalg.norm(POINTS[row].astype(np.float64) - POINTS[other])[None])[0])
