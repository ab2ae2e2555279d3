"""A result records where it comes from, and is replayed by that."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.comparison import compare_alone
from engine.errors import QueryError
from engine.index import Index
from engine.replay import check_replayable, replay
from engine.result import EncoderState, Provenance, index_state
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from engine.views import Result, result_view
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document
from tests.strict_schema import check

FAKE = EncoderState("fake", "f" * 32)
SCORING = {
    "chunk_weight": 0.27,
    "word_weight": 0.4,
    "pair_weight": 0.33,
    "opening": 0.4,
    "exceeding": 8,
    "power": 2.0,
    "root": 0.5,
    "cover": False,
}


def origin_of(result: Result) -> Provenance:
    assert result.provenance is not None
    return result.provenance


def test_a_search_records_all_its_parameters(index: Index, corpus: list[Document]) -> None:
    options = {
        **{"k": 2, "offset": 1, "where": "year > 2001", "without": "doc004", "skip": ["references"], "exact": True},
        **{"weights": {"part one": 2.0}, "mode": "similar", "diversify": True, "min_pair": 0.01, "least": 0.0},
    }
    result = index.search(corpus[3], Request.of(candidates=5, encode_tokens=900, **options))  # type: ignore[arg-type]
    assert origin_of(result).parameters == {
        **options,
        "without": ["doc004"],
        "with_itself": False,
        "before": None,
        "one_per": None,
        "candidates": 5,
        "encode_tokens": 900,
        "explain": "evidence",
        "scoring": SCORING,
    }
    assert not origin_of(result).is_indexed
    assert abs((datetime.now(UTC) - datetime.fromisoformat(origin_of(result).time)).total_seconds()) < 600


def test_a_search_records_encoder_index_and_documents_left_out_but_for_its_query(
    index: Index, built_folder: Path, corpus: list[Document]
) -> None:
    found = origin_of(index.search(corpus[3]))
    assert found.encoder == FAKE
    assert (found.index.path, found.index.n_documents, found.index.generation) == (str(built_folder), 60, 1)
    found = origin_of(index.search("doc003", Request(without="doc004")))
    assert found.is_indexed and found.parameters["without"] == ["doc004"]


@pytest.mark.slow
def test_a_query_text_is_stored_unless_it_comes_from_a_file_or_the_index(index: Index, corpus: list[Document]) -> None:
    kept = check(index.search(replace(corpus[3], source="")).to_dict())["query"]["document"]
    assert kept["text"] == corpus[3].text
    assert [section["heading"] for section in kept["sections"]] == [one.heading for one in corpus[3].sections]
    assert check(index.search(replace(corpus[3], source="a.md")).to_dict())["query"]["document"] is None
    assert check(index.search("doc003").to_dict())["query"]["document"] is None


def test_a_comparison_alone_records_the_encoder_and_no_index(corpus: list[Document]) -> None:
    comparison = result_view(compare_alone(corpus[0], corpus[1], FakeEncoder()))
    found = origin_of(comparison)
    assert (found.encoder, found.index, found.parameters) == (
        FAKE,
        None,
        {"skip": [], "weights": {}, "scoring": SCORING},
    )
    check(comparison.to_dict())


def test_a_comparison_with_an_index_records_the_index_and_is_not_replayed(index: Index, corpus: list[Document]) -> None:
    found = origin_of(index.compare("doc000", corpus[1]))
    assert found.is_indexed and found.index == origin_of(index.search(corpus[0])).index
    values = index.compare("doc001", "doc002").to_dict()
    with pytest.raises(QueryError, match="comes from a comparison; replay accepts results of searches"):
        check_replayable(values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", [make_document(f"d{n}", f"fox and river {n}") for n in range(4)], encoder=FakeEncoder())
    return tmp_path / "x.lm"


def fingerprint(folder: Path) -> str:
    with IndexSnapshot(folder) as snapshot:
        return index_state(snapshot).fingerprint


def test_a_copy_of_an_index_has_the_same_fingerprint_and_a_changed_one_another(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy.lm")
    assert fingerprint(tmp_path / "copy.lm") == fingerprint(folder)
    before = fingerprint(folder)
    build(folder, [make_document("d1", "fox and house")], encoder=FakeEncoder())
    assert fingerprint(folder) != before


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
