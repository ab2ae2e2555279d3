from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import indexer.generation.reference as reference_module
from benchmarks.records import read_records
from benchmarks.tasks.on_demand import (
    DemandRecord,
    Judged,
    RecordedEncoder,
    candidates_first,
    demand_table,
    encoded,
    encoded_so_far,
    index_for_once,
    main,
    measure,
    scaled,
)
from engine.index import Index
from engine.search.request import Request
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus

CORPUS = make_corpus(40)


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_module, "FIRST_DOCUMENTS", 5)
    monkeypatch.setattr(reference_module, "FEWEST_FIRST", 5)
    monkeypatch.setattr(reference_module, "ALL_TOKENS", 0)


@pytest.fixture
def full(tmp_path: Path) -> Path:
    build(tmp_path / "full.lm", CORPUS, encoder=FakeEncoder())
    return tmp_path / "full.lm"


def test_vectors_are_looked_up_and_other_texts_encoded(full: Path) -> None:
    encoder = FakeEncoder()
    with Index.open(full, encoder=encoder) as index:
        recorded = RecordedEncoder(index)
        mine, other = recorded.encode([CORPUS[3], make_corpus(50)[45]])
        assert (mine.chunks == index.stored_query(CORPUS[3].doc_id).vectors.chunks).all()
        assert encoder.encoded == ["doc045"]
        assert len(other.chunks) == len(other.chunk_spans)


def first_queries(n: int) -> Judged:
    queries = CORPUS[:n]
    return Judged(queries, {one.doc_id: {CORPUS[number + 20].doc_id: 1} for number, one in enumerate(queries)})


def test_tokens_grow_with_queries_up_to_those_of_all(full: Path) -> None:
    judged = first_queries(12)
    with Index.open(full, encoder=FakeEncoder()) as index:
        with index_for_once(CORPUS, RecordedEncoder(index), "later") as later:
            row = measure(later, judged, "4 candidates", 4)
        whole = measure(index, judged, "all", None)
        n_tokens = int(index.snapshot.tokens.sum())
    assert list(row.tokens) == ["1", "10", "12"]
    assert 0 < row.tokens["1"] < row.tokens["10"] <= row.tokens["12"] <= n_tokens
    assert set(whole.tokens.values()) == {n_tokens}
    assert len(row.per_query) == 12
    assert row.other_rules.keys() == {"scaled", "candidates first"}


def test_other_rules_order_the_same_hits(full: Path) -> None:
    with (
        Index.open(full, encoder=FakeEncoder()) as index,
        index_for_once(CORPUS, RecordedEncoder(index), "later") as later,
    ):
        hits = list(later.search(CORPUS[7], Request(k=40, candidates=3, with_itself=True)).hits)
    for rule in (scaled, candidates_first):
        assert {hit.doc_id for hit in rule(hits)} == {hit.doc_id for hit in hits}
    flags = [hit.has_vectors for hit in candidates_first(hits)]
    assert flags == sorted(flags, reverse=True) and True in flags and False in flags
    by_words = [hit.score for hit in scaled(hits) if not hit.has_vectors]
    assert by_words == sorted(by_words, reverse=True)


def run(*arguments: str, tmp_path: Path) -> tuple[DemandRecord, str]:
    """The record of the command, and what it prints, which includes the table."""
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*arguments, *places], catch_exceptions=False)
    assert done.exit_code == 0
    (record,) = read_records(tmp_path / "out")
    assert isinstance(record, DemandRecord) and demand_table([record]) in done.output
    return record, done.output


@pytest.mark.slow
def test_the_command_writes_a_row_for_each_way(folder: Path, tmp_path: Path, bert_folder: Path) -> None:
    record, printed = run(str(folder), "--quick", "--encoder", str(bert_folder), tmp_path=tmp_path)
    assert [row.way for row in record.rows] == ["words", "20 candidates", "50 candidates", "200 candidates", "all"]
    assert f"| {record.task} (2, {bert_folder.name}) | all | " in printed


def test_candidates_of_the_first_queries_are_encoded_and_kept(folder: Path, tmp_path: Path, bert_folder: Path) -> None:
    for _ in range(2):  # the second run finds the vectors of the first
        options = ["--seed", "1", "--encoder", str(bert_folder), "--queries", "1"]
        record, printed = run(str(folder), *options, tmp_path=tmp_path)
    words, later = record.rows
    assert (words.way, words.tokens["1"]) == ("words", 0)
    assert later.way == "20 candidates"
    assert 0 < later.tokens["1"] <= record.n_tokens
    assert record.name == f"demand-pets-test-{bert_folder.name}-first1"
    assert f"| pets (1, {bert_folder.name}) | 20 candidates |" in printed
    (kept,) = (tmp_path / "work").glob("pets@*-seed1-first1-later-*.lm")
    with Index.open(kept) as index:
        assert index.snapshot.has_vectors.any()


@pytest.mark.slow
def test_the_sample_is_what_an_index_encodes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.tasks.on_demand.load_given", lambda name: FakeEncoder())
    fresh, again = (encoded("made", "fake", tmp_path, CORPUS, first_queries(3)) for _ in range(2))
    build(tmp_path / "other.lm", CORPUS, encoder=FakeEncoder(), encode="later")
    with Index.open(tmp_path / "other.lm", encoder=FakeEncoder()) as index:
        assert fresh.sample == again.sample == encoded_so_far(index)
    assert [list(found.rows[1].tokens) for found in (fresh, again)] == [["1", "3"], ["3"]]
    assert fresh.rows[1].tokens["3"] == again.rows[1].tokens["3"]
    assert fresh.rows[1].per_query == again.rows[1].per_query
