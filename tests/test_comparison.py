"""Comparison of two documents: with an index as a search scores them, and without one."""

from pathlib import Path

import pytest

from engine.comparison import compare_alone
from engine.index import Index
from engine.report.lines import plain
from engine.report.table import result_lines
from engine.result import Result
from engine.search.request import Request
from engine.text.document import Document
from engine.views import result_view
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


def _parts_sum_to_the_score(comparison: Result) -> None:
    check(result_view(comparison).to_dict())
    assert comparison[0].breakdown.score == pytest.approx(comparison[0].score, abs=1e-5)


@pytest.mark.parametrize("target", ["doc3", "doc17"])
def test_with_an_index_the_score_is_that_of_a_search(index: Index, corpus: list[Document], target: str) -> None:
    doc_ids = [document.doc_id for document in corpus]
    query, target = corpus[5], doc_ids[int(target[3:])]
    (hit,) = [hit for hit in index.search(query, Request(k=len(corpus), exact=True)) if hit.doc_id == target]
    for found in (index.compare(query, target), index.compare(query.doc_id, index.document(target))):
        assert found[0].score == hit.score
        assert found[0].pairs == hit.pairs
        assert found.background == str(index.snapshot.folder)
        _parts_sum_to_the_score(found)


@pytest.mark.parametrize("weights", [{"1": 3.0}, {"1": 0.0, "2": 2.5}])
def test_weights_with_an_index_are_those_of_a_search(
    index: Index, corpus: list[Document], weights: dict[str, float]
) -> None:
    query, target = corpus[5], corpus[9].doc_id
    (hit,) = [
        hit for hit in index.search(query, Request(weights=weights, k=len(corpus), exact=True)) if hit.doc_id == target
    ]
    found = index.compare(query, target, Request(weights=weights))
    assert (found[0].score, found[0].pairs) == (hit.score, hit.pairs)
    assert found.provenance is not None and found.provenance.parameters["weights"] == weights
    _parts_sum_to_the_score(found)


def test_a_weight_moves_the_score_towards_its_section_and_0_adds_nothing() -> None:
    fox, plain, river = (
        compare_alone(QUERY, TARGET, FakeEncoder(), Request(weights={"river": weight}))[0].score
        for weight in (0.2, 1, 5)
    )
    assert fox < plain < river
    found = compare_alone(QUERY, TARGET, FakeEncoder(), Request(weights={"river": 0}))
    assert {pair.query_section for pair in found[0].pairs} == {0}
    assert found[0].score < compare_alone(QUERY, TARGET, FakeEncoder())[0].score
    _parts_sum_to_the_score(found)


def test_skipping_a_kind_equals_a_weight_of_0() -> None:
    query = make_document("q", [("Body", "the long river runs"), ("Appendix", "an old house stands there")])
    skipped = compare_alone(query, TARGET, FakeEncoder(), Request(skip=["appendix"]))
    assert skipped[0].pairs == compare_alone(query, TARGET, FakeEncoder(), Request(weights={"appendix": 0}))[0].pairs
    assert all(pair.query_section == 0 for pair in skipped[0].pairs)
    _parts_sum_to_the_score(skipped)


def test_a_skipped_kind_is_left_out_of_the_target_too() -> None:
    body, tail = ("Body", "the long river runs"), ("Appendix", "an old house stands there by the long river")
    target, query = make_document("t", [body, tail]), make_document("q", [("House", tail[1]), ("River", body[1])])
    compared = compare_alone(query, target, FakeEncoder(), Request(skip=["appendix"]))
    assert {pair.target_section for pair in compared[0].pairs} == {0}
    assert compared[0].score < compare_alone(query, target, FakeEncoder())[0].score
    _parts_sum_to_the_score(compared)


def test_without_an_index_the_matching_sections_and_related_documents_score_higher() -> None:
    found = result_view(compare_alone(QUERY, TARGET, FakeEncoder()))
    assert (found[0].pairs[0].query_section, found[0].pairs[0].target_section) == (1, 0)
    assert all(part.threshold == 0 for pair in found[0].pairs for part in pair.parts)
    assert found.background == ""
    _parts_sum_to_the_score(found)
    assert compare_alone(QUERY, QUERY, FakeEncoder())[0].score == pytest.approx(1, abs=1e-3)
    encoder = FakeEncoder()
    assert compare_alone(QUERY, TARGET, encoder)[0].score > compare_alone(QUERY, OTHER, encoder)[0].score


def test_an_index_of_words_compares_by_words(tmp_path: Path) -> None:
    build(tmp_path / "w.lm", [QUERY, TARGET, OTHER], encode="none")
    with Index.open(tmp_path / "w.lm") as index:
        found = index.compare(QUERY, "t")
        assert found[0].score == next(hit.score for hit in index.search(QUERY) if hit.doc_id == "t")
        assert "compared by words alone" in str(found)
        _parts_sum_to_the_score(found)


def test_the_table_names_both_documents_and_what_the_score_rests_on(index: Index, corpus: list[Document]) -> None:
    alone = plain(result_lines(compare_alone(QUERY, TARGET, FakeEncoder()), n_pairs=1, width=80))
    assert alone.startswith("< q") and "\n> t" in alone
    assert "without an index there are no thresholds" in alone
    assert "River -> Sea" in alone and "river" in alone and "*" not in alone
    assert max(map(len, alone.splitlines())) <= 80
    with_index = str(index.compare(corpus[0], corpus[1].doc_id))
    assert f"score, with thresholds and word statistics of {index.snapshot.folder}"[:40] in with_index
    styled = result_lines(compare_alone(QUERY, TARGET, FakeEncoder()), n_pairs=1)
    assert ("long river runs", "match") in [(run.text, run.style) for line in styled for run in line]
