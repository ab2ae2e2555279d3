from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.behaviour.boilerplate import PlantingEncoder, measure, passage, planted
from engine.index import Index
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus

CORPUS = make_corpus(40)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder())
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as opened:
        yield opened


def test_a_passage_is_a_section_of_its_own_at_the_end() -> None:
    made = planted(CORPUS[3], "Without warranty.")
    last = made.sections[-1]
    assert made.text[last.start : last.stop] == "Without warranty."
    assert made.sections[-2].stop == last.start
    assert made.text.startswith(CORPUS[3].text.rstrip())
    assert 150 < len(passage().split()) < 400


def test_vectors_of_a_planted_document_are_its_own_and_those_of_the_passage(index: Index) -> None:
    encoder = PlantingEncoder([index], passage())
    own, made = encoder.encode([CORPUS[3], planted(CORPUS[3], passage())])
    n_own = len(own.chunks)
    (alone,) = FakeEncoder().encode([planted(CORPUS[3], passage())])
    assert np.array_equal(made.chunks[:n_own], own.chunks)
    assert made.chunk_spans == alone.chunk_spans
    np.testing.assert_allclose(made.chunks, alone.chunks, atol=1e-3)  # stored in half precision


@pytest.mark.slow
def test_a_rare_passage_takes_more_of_the_score_than_a_frequent_one(index: Index) -> None:
    encoder, hosts = PlantingEncoder([index], passage()), np.arange(40)
    queries = [CORPUS[number].doc_id for number in range(3)]
    none, hits = measure(CORPUS, encoder, 0.0, queries, hosts)
    rare, _ = measure(CORPUS, encoder, 0.1, queries, hosts)
    frequent, _ = measure(CORPUS, encoder, 0.9, queries, hosts)
    assert (none.n_planted, rare.n_planted, frequent.n_planted) == (0, 4, 36)
    assert none.score == 0 and none.hosts == 0
    assert all(len(found) == 10 for found in hits.values())
    assert rare.passages > frequent.passages
    assert 0 < rare.score < 1
