from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.baselines.word_distances import (
    Ground,
    Lowest,
    Mass,
    TransportBaseline,
    TransportConfig,
    WordBag,
    WordCounter,
    WordMovers,
    WordRotators,
    costs,
    mass_of,
    prefetch_and_prune,
    relaxed,
    transport,
)
from benchmarks.baselines.word_vectors import WordVectors, read_texts
from engine.text.document import Document
from tests.benchmarks.baselines.by_linear_program import Vector, angle, least_cost, unit_distance
from tests.benchmarks.baselines.small_words import WORDS, known_words, random_documents, texts_of
from tests.fakes import make_document

pytest.importorskip("gensim")


def test_bags_count_the_known_words_of_each_document() -> None:
    texts, known = texts_of([f"{WORDS[3]} {WORDS[1]} {WORDS[3]} the b2b {WORDS[50]}", "the"]), known_words(20, 4)
    bags = WordCounter(known).bags(texts)
    found = [dict(zip(bag.rows.tolist(), bag.counts.tolist(), strict=True)) for bag in bags]
    assert found == [{1: 1, 3: 2}, {}]


def test_only_the_first_words_of_the_source_are_known() -> None:
    texts = texts_of([" ".join(WORDS[:6])])
    known = known_words(6, 4)
    later = WordVectors(known.row, known.vectors, known.ranks + 10)
    assert WordCounter(known, n_known=4).bags(texts)[0].rows.tolist() == [0, 1, 2, 3]
    assert WordCounter(later, n_known=13).bags(texts)[0].rows.tolist() == [0, 1, 2]


def test_words_with_a_zero_vector_are_left_out() -> None:
    known = known_words(3, 4)
    vectors = np.where(np.array([[1], [0], [1]]), known.vectors, 0).astype(np.float32)
    counter = WordCounter(WordVectors(known.row, vectors, known.ranks))
    bags = counter.bags(texts_of([" ".join(WORDS[:3])]))
    assert bags[0].rows.tolist() == [0, 2]


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


def test_the_heaviest_words_are_kept_and_of_equal_ones_the_first() -> None:
    bag = WordBag(np.array([2, 4, 6, 8]), np.array([1, 3, 1, 2]))
    mass = mass_of(bag, GROUNDS["distance"], 3)
    assert mass.rows.tolist() == [2, 4, 8]
    np.testing.assert_allclose(mass.shares, [1 / 6, 3 / 6, 2 / 6])


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
        assert lowest(query).sum() > 0.2 * least.sum()  # and they are not trivial


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


BOUNDS_RNG = np.random.default_rng(0)


def test_a_pruned_search_equals_a_search_over_all_targets() -> None:
    for k in (1, 3, 10, 60):
        true = BOUNDS_RNG.uniform(0, 1, 50).round(1)  # with many ties
        bounds = true * BOUNDS_RNG.uniform(0.3, 1, 50)
        bounds[7] = np.inf
        found = prefetch_and_prune(bounds, k, lambda row, _, true=true: float(true[row]))
        expected = sorted((float(true[row]), row) for row in range(50) if row != 7)[:k]
        assert list(zip(found.costs, found.rows, strict=True)) == expected


def test_targets_whose_bound_is_too_high_are_not_solved() -> None:
    true = np.array([0.3, 0.1, 0.2, 0.9, 0.8])
    seen: list[int] = []

    def cost(row: int, limit: float) -> float:
        seen.append(row)
        return float(true[row])

    found = prefetch_and_prune(np.array([0.25, 0.1, 0.2, 0.5, 0.4]), 2, cost)
    assert (found.rows, found.costs, found.n_solved, seen) == ([1, 2], [0.1, 0.2], 2, [1, 2])


def test_a_target_abandoned_above_the_limit_is_neither_found_nor_counted() -> None:
    true = [0.1, 0.5, 0.4, 0.2]
    limits: list[float] = []

    def cost(row: int, limit: float) -> float | None:
        limits.append(limit)
        return None if true[row] > limit else true[row]

    found = prefetch_and_prune(np.zeros(4), 2, cost)
    assert (found.rows, found.n_solved) == ([0, 3], 4)
    assert limits == pytest.approx([np.inf, np.inf, 0.5, 0.4], abs=1e-5)
    assert prefetch_and_prune(np.zeros(4), 1, cost).n_solved == 1


def test_at_most_the_given_number_of_candidates_is_solved() -> None:
    true = [0.1, 0.2, 0.3, 0.0]
    found = prefetch_and_prune(np.array([0.0, 0.0, 0.1, 0.2]), 2, lambda row, _: true[row], most=3)
    assert (found.rows, found.n_solved) == ([0, 1], 3)
    assert prefetch_and_prune(np.zeros(4), 0, lambda row, _: true[row]).rows == []


pytest.importorskip("gensim")
pytest.importorskip("ot")

ALL = TransportConfig(max_words=None, max_targets=None)
VECTORS = known_words(60, 6)
DOCUMENTS = random_documents(30, 60, 25)
Cost = Callable[[Vector, Vector], float]
Weight = Callable[[Vector], float]
BY_HAND: dict[type[TransportBaseline], tuple[Cost, Weight]] = {
    WordMovers: (unit_distance, lambda x: 1.0),
    WordRotators: (angle, lambda x: float(np.linalg.norm(x))),
}


def fitted(
    kind: type[TransportBaseline], documents: list[Document], config: TransportConfig = ALL
) -> TransportBaseline:
    return kind(config=config).fit_words(read_texts(documents), VECTORS)


@pytest.fixture(params=BY_HAND, ids=lambda kind: str(kind.name))
def kind(request: pytest.FixtureRequest) -> type[TransportBaseline]:
    made: type[TransportBaseline] = request.param
    return made


def test_scores_are_minus_the_optimum_of_the_linear_program(kind: type[TransportBaseline]) -> None:
    baseline, (cost, weight) = fitted(kind, DOCUMENTS), BY_HAND[kind]
    for first, second in [(0, 1), (2, 3), (4, 4), (5, 20), (7, 12)]:
        least = least_cost(DOCUMENTS[first].text, DOCUMENTS[second].text, VECTORS, cost, weight)
        assert baseline.score(f"doc{first}", f"doc{second}") == pytest.approx(-least, abs=1e-6)


@pytest.mark.slow
def test_pruning_changes_no_answer_and_spares_work(kind: type[TransportBaseline]) -> None:
    baseline = fitted(kind, DOCUMENTS)
    n_solved = 0
    for query in DOCUMENTS:
        others = [document.doc_id for document in DOCUMENTS if document is not query]
        scores = {doc_id: baseline.score(query.doc_id, doc_id) for doc_id in others}
        expected = sorted(others, key=lambda doc_id: -scores[doc_id])[:5]
        ranking = baseline.search(query, k=5)
        assert [doc_id for doc_id, _ in ranking] == expected
        assert [score for _, score in ranking] == pytest.approx([scores[doc_id] for doc_id in expected], abs=1e-9)
        n_solved += baseline.nearest(query, 5).n_solved
    assert n_solved < 0.7 * len(DOCUMENTS) * (len(DOCUMENTS) - 1)


def test_no_more_targets_are_solved_than_configured(kind: type[TransportBaseline]) -> None:
    baseline = fitted(kind, DOCUMENTS, TransportConfig(max_words=None, max_targets=4))
    assert baseline.nearest(DOCUMENTS[0], 3).n_solved <= 4
    assert len(baseline.search(DOCUMENTS[0], k=10)) == 4


def test_a_document_without_a_known_word_is_farthest_and_never_found(kind: type[TransportBaseline]) -> None:
    documents = [*DOCUMENTS[:4], make_document("none", f"the 42 {WORDS[100]}")]
    baseline = fitted(kind, documents)
    assert baseline.search(documents[4], k=5) == []
    assert "none" not in dict(baseline.search(documents[0], k=5))
    assert baseline.score("none", "doc0") == baseline.score("doc0", "none") == -2.0
    assert baseline.score("doc0", "doc1") > -2.0


def test_only_the_heaviest_words_are_moved_where_a_limit_is_given(kind: type[TransportBaseline]) -> None:
    first, second = (
        f"{WORDS[0]} " * 9 + f"{WORDS[1]} " * 9 + WORDS[2],
        f"{WORDS[0]} " * 9 + f"{WORDS[1]} " * 9 + WORDS[3],
    )
    documents = [make_document("a", first), make_document("b", second)]
    two = TransportConfig(max_words=2, max_targets=None)
    known = VECTORS.vectors[:4]
    lengths = np.linalg.norm(known, axis=1)
    assert (9 * lengths[:2]).min() > lengths[2:].max()
    assert fitted(kind, documents, two).score("a", "b") == pytest.approx(0, abs=1e-6)
    assert fitted(kind, documents).score("a", "b") < -1e-3


def test_wmd_is_that_of_gensim() -> None:
    from gensim.models import KeyedVectors

    keyed = KeyedVectors(VECTORS.vectors.shape[1])
    keyed.add_vectors(list(VECTORS.row), VECTORS.vectors)
    baseline = fitted(WordMovers, DOCUMENTS)
    for first, second in [(0, 1), (3, 9), (14, 2)]:
        theirs = keyed.wmdistance(*(DOCUMENTS[number].text.split() for number in (first, second)))
        assert baseline.score(f"doc{first}", f"doc{second}") == pytest.approx(-theirs, abs=1e-6)


def test_wrd_gives_words_with_longer_vectors_more_weight() -> None:
    texts = texts_of([f"{WORDS[0]} {WORDS[1]}", WORDS[0], WORDS[1]])
    lengths = np.linalg.norm(VECTORS.vectors[:2].astype(np.float64), axis=1)
    turned = angle(*(VECTORS.vectors[row].astype(np.float64) for row in (0, 1)))
    baseline = WordRotators(config=ALL).fit_words(texts, VECTORS)
    assert baseline.score("d0", "d1") == pytest.approx(-turned * lengths[1] / lengths.sum(), abs=1e-6)
    assert baseline.score("d0", "d2") == pytest.approx(-turned * lengths[0] / lengths.sum(), abs=1e-6)
