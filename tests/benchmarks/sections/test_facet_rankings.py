from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.sections.facet_rankings import Ranking, candidate_scores, largest_pair_shares
from benchmarks.sections.faceted import read_labelled
from benchmarks.sections.subcorpus import index_documents
from engine.index import Index
from engine.result import Result
from tests.fakes import FakeEncoder

CANDIDATES = ["same method", "same background", "no method", "far"]


@pytest.fixture
def index(faceted_folder: Path, tmp_path: Path) -> Iterator[Index]:
    documents = list(read_labelled(faceted_folder / "corpus.jsonl.gz"))
    index_documents(tmp_path / "facets.lm", documents, FakeEncoder())
    with Index.open(tmp_path / "facets.lm", encoder=FakeEncoder()) as opened:
        yield opened


@pytest.fixture
def result(index: Index) -> Result:
    return index.search_id("q", k=5, exact=True)


def test_the_facets_part_finds_what_is_alike_in_that_facet_alone(index: Index, result: Result) -> None:
    for facet, expected in {"method": "same method", "background": "same background", "result": "no method"}.items():
        scores = candidate_scores(index, result, facet, CANDIDATES)
        for ranking in (Ranking.FACET_TO_FACET, Ranking.FACET_TO_ANY, Ranking.FACET_COSINE):
            assert max(CANDIDATES, key=scores[ranking].__getitem__) == expected


def test_the_parts_of_facet_and_others_sum_to_the_score(index: Index, result: Result) -> None:
    scores = candidate_scores(index, result, "method", CANDIDATES)
    for hit in result.hits:
        parts = scores[Ranking.FACET_TO_ANY][hit.doc_id] + scores[Ranking.OTHERS][hit.doc_id]
        assert parts + hit.breakdown.document.contribution == pytest.approx(hit.score, abs=1e-6)
        assert 0 <= scores[Ranking.FACET_TO_FACET][hit.doc_id] <= scores[Ranking.FACET_TO_ANY][hit.doc_id]


def test_cosines_are_those_of_the_vectors(index: Index, result: Result) -> None:
    scores = candidate_scores(index, result, "method", CANDIDATES)
    matrix = index.section_matrix("q", "far").cosines
    assert scores[Ranking.FACET_COSINE]["far"] == pytest.approx(matrix[2, 2], abs=1e-6)
    assert scores[Ranking.FACET_COSINE]["no method"] == -1
    own, far = (index.stored_query(name).vectors.document for name in ("q", "far"))
    assert scores[Ranking.DOCUMENT]["far"] == pytest.approx(own @ far, abs=1e-6)


def test_the_largest_pair_of_the_relevant_hit_starts_in_the_facet(index: Index, result: Result) -> None:
    shares = largest_pair_shares(index, result, "method", {"same method": 2, "same background": 0, "absent": 1})
    assert (shares["relevant"], shares["irrelevant"]) == (1.0, 0.0)
    # Title, background, method and result have 2, 4, 5 and 2 words; a chunk weighs the root of its tokens.
    assert shares["by chance"] == pytest.approx(5**0.5 / (2**0.5 + 4**0.5 + 5**0.5 + 2**0.5))
    assert largest_pair_shares(index, result, "method", {"same method": 2})["irrelevant"] is None
