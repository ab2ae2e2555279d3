from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.gaps.corpus import best_documents, joint_scores, mapped_corpus, read_corpus
from benchmarks.gaps.maps import LinearMap, unchanged
from engine.index import Index
from indexer.building.builder import build
from tests.benchmarks.gaps.made_corpus import made_corpus
from tests.fakes import FakeEncoder, make_corpus

N_DOCUMENTS = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", make_corpus(N_DOCUMENTS), encoder=FakeEncoder())
    return tmp_path / "x.lm"


def test_the_identity_gives_the_scores_of_search(folder: Path) -> None:
    queries = ["doc003", "doc017"]
    with Index.open(folder, encoder=FakeEncoder()) as index:
        corpus = read_corpus("made", index, {"valid": {query_id: {"doc013": 1} for query_id in queries}})
        results = {query_id: index.search_id(query_id, k=N_DOCUMENTS, exact=True) for query_id in queries}
    mapped = mapped_corpus(corpus, unchanged)
    for case in corpus.cases["valid"]:
        scores = joint_scores(corpus, case, mapped)
        hits = results[case.query_id].hits
        assert best_documents(corpus, case, scores, N_DOCUMENTS) == [hit.doc_id for hit in hits]
        by_name = dict(zip(corpus.doc_ids, scores.tolist(), strict=True))
        np.testing.assert_allclose([by_name[hit.doc_id] for hit in hits], [hit.score for hit in hits], atol=1e-5)


def test_words_alone_rank_by_words() -> None:
    corpus = made_corpus(words_know=True)
    case = corpus.cases["valid"][0]
    found = best_documents(corpus, case, case.words, 100)
    assert set(found) == corpus.qrels["valid"][case.query_id].keys()


def test_a_rotation_changes_no_score() -> None:
    corpus = made_corpus()
    draw = np.random.default_rng(3)
    rotation, _ = np.linalg.qr(draw.standard_normal((16, 16)))
    turned = LinearMap(rotation.astype(np.float32), np.zeros(16, np.float32))
    squeezed = LinearMap(np.diag(np.linspace(1, 3, 16)).astype(np.float32), np.zeros(16, np.float32))
    case = corpus.cases["valid"][1]
    scores = joint_scores(corpus, case, mapped_corpus(corpus, unchanged))
    np.testing.assert_allclose(joint_scores(corpus, case, mapped_corpus(corpus, turned)), scores, atol=1e-3)
    assert np.abs(joint_scores(corpus, case, mapped_corpus(corpus, squeezed)) - scores).max() > 0.02


def test_only_the_first_documents_without_chunks_are_rescored(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = made_corpus()
    case = corpus.cases["valid"][0]
    mapped = mapped_corpus(corpus, unchanged)
    every = joint_scores(corpus, case, mapped)
    monkeypatch.setattr("benchmarks.gaps.corpus.RESCORED", 20)
    scores = joint_scores(corpus, case, mapped)
    first = np.argsort(-case.rest)[:20]
    np.testing.assert_allclose(scores[first], every[first], atol=1e-6)
    others = np.setdiff1d(np.arange(len(scores)), first)
    assert np.array_equal(scores[others], case.rest[others])
    assert (every[others] > case.rest[others]).any()
