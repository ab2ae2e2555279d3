"""WMD and WRD: scores against the linear program, and the search against the scores of all pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.baselines.texts import read_texts
from benchmarks.baselines.transport_baseline import TransportBaseline, TransportConfig
from benchmarks.baselines.wmd import WordMovers
from benchmarks.baselines.wrd import WordRotators
from engine.document import Document
from tests.benchmarks.baselines.by_linear_program import Vector, angle, least_cost, unit_distance
from tests.benchmarks.baselines.small_words import WORDS, known_words, random_documents, texts_of
from tests.fakes import make_document

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


def test_a_depth_beyond_the_corpus_gives_every_target(kind: type[TransportBaseline]) -> None:
    assert len(fitted(kind, DOCUMENTS).search(DOCUMENTS[0], k=100)) == len(DOCUMENTS) - 1


def test_no_more_targets_are_looked_at_than_asked(kind: type[TransportBaseline]) -> None:
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


def test_settings_name_the_limits_and_the_vectors(kind: type[TransportBaseline]) -> None:
    assert kind(config=ALL).settings.items() >= {"max_words": "all", "max_targets": "all", "word2vec_seed": 0}.items()
    assert kind().settings.items() >= {"max_words": 300, "max_targets": 200}.items()


def test_wmd_is_that_of_gensim() -> None:
    from gensim.models import KeyedVectors

    keyed = KeyedVectors(VECTORS.vectors.shape[1])
    keyed.add_vectors(list(VECTORS.row), VECTORS.vectors)
    baseline = fitted(WordMovers, DOCUMENTS)
    for first, second in [(0, 1), (3, 9), (14, 2)]:
        theirs = keyed.wmdistance(*(DOCUMENTS[number].text.split() for number in (first, second)))
        assert baseline.score(f"doc{first}", f"doc{second}") == pytest.approx(-theirs, abs=1e-6)


def test_wrd_counts_long_words_more() -> None:
    texts = texts_of([f"{WORDS[0]} {WORDS[1]}", WORDS[0], WORDS[1]])
    lengths = np.linalg.norm(VECTORS.vectors[:2].astype(np.float64), axis=1)
    turned = angle(*(VECTORS.vectors[row].astype(np.float64) for row in (0, 1)))
    baseline = WordRotators(config=ALL).fit_words(texts, VECTORS)
    assert baseline.score("d0", "d1") == pytest.approx(-turned * lengths[1] / lengths.sum(), abs=1e-6)
    assert baseline.score("d0", "d2") == pytest.approx(-turned * lengths[0] / lengths.sum(), abs=1e-6)
