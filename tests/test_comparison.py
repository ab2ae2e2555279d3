"""Two documents compared: as a search would score them with an index, and by themselves without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.comparison import Comparison, compare_alone
from engine.document import Document
from engine.index import Index
from engine.report.comparison_table import comparison_lines, comparison_table
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document
from tests.strict_schema import check

QUERY = make_document(
    "q", [("Fox", "the quick fox jumps over the lazy dog"), ("River", "a long river runs to the sea")]
)
TARGET = make_document(
    "t", [("Sea", "the long river runs to the sea and back"), ("House", "an old house stands there")]
)
OTHER = make_document("o", "pumps and valves are made of steel")


def _parts_sum_to_the_score(comparison: Comparison) -> None:
    check(comparison.to_dict())
    assert comparison.result.hits[0].breakdown.score == pytest.approx(comparison.score, abs=1e-5)


@pytest.mark.parametrize("target", ["doc3", "doc17"])
def test_with_an_index_the_score_is_that_of_a_search(index: Index, corpus: list[Document], target: str) -> None:
    doc_ids = [document.doc_id for document in corpus]
    query, target = corpus[5], doc_ids[int(target[3:])]
    (hit,) = [hit for hit in index.search(query, k=len(corpus), exact=True) if hit.doc_id == target]
    for found in (index.compare(query, target), index.compare(query.doc_id, index.document(target))):
        assert found.score == hit.score
        assert found.pairs == hit.pairs
        assert found.background == str(index.snapshot.folder)
        _parts_sum_to_the_score(found)


def test_without_an_index_the_matching_sections_come_first() -> None:
    found = compare_alone(QUERY, TARGET, FakeEncoder())
    assert (found.pairs[0].query_section, found.pairs[0].target_section) == (1, 0)
    assert all(part.threshold == 0 for pair in found.pairs for part in pair.parts)
    assert found.background == ""
    _parts_sum_to_the_score(found)


def test_a_document_compared_with_itself_scores_1() -> None:
    assert compare_alone(QUERY, QUERY, FakeEncoder()).score == pytest.approx(1, abs=1e-3)


def test_a_related_document_scores_higher_than_another() -> None:
    encoder = FakeEncoder()
    assert compare_alone(QUERY, TARGET, encoder).score > compare_alone(QUERY, OTHER, encoder).score


def test_the_matrix_has_the_cosines_of_all_sections() -> None:
    found = compare_alone(QUERY, TARGET, FakeEncoder())
    mine, theirs = (FakeEncoder().encode([one])[0].sections for one in (QUERY, TARGET))
    np.testing.assert_allclose(found.matrix.cosines, mine @ theirs.T, atol=2e-3)
    assert np.argmax(found.matrix.cosines[1]) == 0


def test_an_index_of_words_compares_by_words(tmp_path: Path) -> None:
    build(tmp_path / "w.lm", [QUERY, TARGET, OTHER], encode="none")
    with Index.open(tmp_path / "w.lm") as index:
        found = index.compare(QUERY, "t")
        assert found.score == next(hit.score for hit in index.search(QUERY) if hit.doc_id == "t")
        assert "compared by words alone" in str(found)
        _parts_sum_to_the_score(found)


def test_the_table_names_both_documents_and_what_the_score_rests_on(index: Index, corpus: list[Document]) -> None:
    alone = comparison_table(compare_alone(QUERY, TARGET, FakeEncoder()), n_pairs=1, width=80)
    assert alone.startswith("< q") and "\n> t" in alone
    assert "without an index there are no thresholds" in alone
    assert "River -> Sea" in alone and "*river*" in alone
    assert max(map(len, alone.splitlines())) <= 80
    with_index = str(index.compare(corpus[0], corpus[1].doc_id))
    assert f"score, with thresholds and word statistics of {index.snapshot.folder}"[:40] in with_index
    styled = comparison_lines(compare_alone(QUERY, TARGET, FakeEncoder()), n_pairs=1)
    assert ("river", "match") in [(run.text, run.style) for line in styled for run in line]
