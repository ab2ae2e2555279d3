"""Searches are repeated from stored results, and are equal on the same index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import QueryError
from engine.index import Index
from engine.replay import check_replayable, kept_query, recorded_results, replay
from engine.report.contract import envelope
from engine.search.request import Request
from indexer.building.builder import build
from longmatch.index import Index as PublicIndex
from tests.fakes import FakeEncoder, make_document


@pytest.mark.slow
def test_fifty_stored_results_are_equal_on_the_same_index(index: Index, tmp_path: Path) -> None:
    results = [index.search(f"doc{number:03}", Request(k=3)).to_dict(n_pairs=2) for number in range(50)]
    (tmp_path / "x.json").write_text(json.dumps(envelope(results)))
    recorded = recorded_results(tmp_path / "x.json")
    assert len(recorded) == 50
    assert [replay(index, one, None).is_equal for one in recorded] == [True] * 50


def test_a_stored_text_is_replayed_with_an_equal_result(built_folder: Path) -> None:
    with PublicIndex.open(built_folder, encoder=FakeEncoder()) as index:
        text = "# One\n\ncommon1 topic3word4 common2\n\n# Two\n\ntopic3word7 common5\n"
        recorded = json.loads(json.dumps(index.search(text, k=4).to_dict()))
        query = kept_query(recorded)
        assert query is not None and query.text == text
        found = replay(index.opened, recorded, query)
    assert found.is_equal and found.reasons == ()


def test_a_document_that_was_left_out_may_be_missing_from_the_index(tmp_path: Path) -> None:
    documents = [make_document(f"d{number}", f"fox and river {number}") for number in range(3)]
    build(tmp_path / "x.lm", documents, encoder=FakeEncoder())
    query = make_document("q", "fox and river")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        recorded = index.search(query, Request(without="d1")).to_dict()
    recorded["provenance"]["parameters"]["without"].append("gone")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        found = replay(index, recorded, query)
    assert found.is_equal and found.reasons == ("without: ['d1', 'gone'], now ['d1']",)


def test_a_comparison_is_refused(index: Index) -> None:
    values = index.compare("doc001", "doc002").to_dict()
    with pytest.raises(QueryError, match="comes from a comparison; replay accepts results of searches"):
        check_replayable(values)
