from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import indexer.generation.reference as reference_module
from benchmarks.runs import read_runs
from benchmarks.tasks.on_demand import RecordedEncoder, index_for_once, main, ranked
from engine.index import Index
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


def test_tokens_grow_with_queries_up_to_those_of_all(full: Path) -> None:
    queries = CORPUS[:12]
    with Index.open(full, encoder=FakeEncoder()) as index:
        with index_for_once(CORPUS, RecordedEncoder(index), "later") as later:
            rankings, n_tokens = ranked(later, queries, 4)
        _, of_all = ranked(index, queries, 0)
        whole = int(index.snapshot.tokens.sum())
    assert list(n_tokens) == [1, 10, 12]
    assert 0 < n_tokens[1] < n_tokens[10] <= n_tokens[12] <= whole
    assert set(of_all.values()) == {whole}
    assert len(rankings) == 12 and all(query.doc_id not in rankings[query.doc_id] for query in queries)


@pytest.mark.slow
def test_the_command_writes_a_case_for_each_way(folder: Path, tmp_path: Path, bert_folder: Path) -> None:
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [str(folder), "--quick", "--encoder", str(bert_folder), *places])
    assert done.exit_code == 0, done.output
    (run,) = read_runs(tmp_path / "out")
    ways = ["words", "20 candidates", "50 candidates", "200 candidates", "all"]
    assert [case.id for case in run.cases] == [f"pets_quick (2), {way}" for way in ways]
    assert run.cases[0].values["tokens after all, %"] == 0 and run.cases[-1].values["tokens after 1, %"] == 100
    assert "p" in run.cases[0].values and "p" not in run.cases[-1].values
    assert "| Encoded | nDCG@10 | p | Recall@100 |" in done.output
