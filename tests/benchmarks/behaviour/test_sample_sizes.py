from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import benchmarks.behaviour.sample_sizes as program
from benchmarks.behaviour.records import SampleRecord
from benchmarks.behaviour.sample_sizes import Corpus, Universe, compare, main, rank, samples_table
from benchmarks.records import read_records
from engine.index import Index
from engine.scoring.evidence import Scoring
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus

CORPUS = make_corpus(60)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder())
    index = Index.open(tmp_path / "x.lm", encoder=FakeEncoder())
    queries = CORPUS[:4]
    qrels = {one.doc_id: {CORPUS[number + 20].doc_id: 1} for number, one in enumerate(queries)}
    return Corpus("x", index, queries, qrels, index.snapshot.words(np.arange(len(CORPUS))))


def test_a_sample_of_all_documents_ranks_as_the_index_does(corpus: Corpus) -> None:
    """The reference of a small index is all of its documents; but its rows are rounded, and those here are not."""
    universe = Universe.of([corpus])
    for query in corpus.queries:
        found = compare(universe, corpus, query, Scoring())
        ranking = rank(universe, corpus, query, found, universe.order, Scoring().exceeding)
        hits = corpus.index.search_id(query.doc_id, k=20).hits
        assert len(hits) == 20
        assert len({hit.doc_id for hit in hits} & set(ranking[:20])) >= 19
        assert ranking[:3] == [hit.doc_id for hit in hits[:3]]


def test_a_document_with_the_same_id_in_another_corpus_is_a_separate_hit(corpus: Corpus, tmp_path: Path) -> None:
    build(tmp_path / "y.lm", CORPUS, encoder=FakeEncoder())
    with Index.open(tmp_path / "y.lm", encoder=FakeEncoder()) as index:
        other = Corpus("y", index, [], {}, index.snapshot.words(np.arange(len(CORPUS))))
        universe = Universe.of([corpus, other])
        query = corpus.queries[0]
        found = compare(universe, corpus, query, Scoring())
        ranking = rank(universe, corpus, query, found, universe.order[:30], 2)
    assert ranking[0] == f"y/{query.doc_id}"  # its copy in the other corpus
    assert query.doc_id not in ranking


def test_a_quick_run_writes_a_record_and_its_table(
    folder: Path, tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "SIZES", ((1, 1), (2, 1)))
    monkeypatch.setattr(program, "LARGER", ((5, 1),))
    copy = tmp_path / "other"
    shutil.copytree(folder, copy)
    options = ["--quick", "--split", "test", "--encoder", str(bert_folder), "--work", str(tmp_path / "work")]
    arguments = [str(folder), str(copy), *options, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    (record,) = read_records(tmp_path / "out")
    assert isinstance(record, SampleRecord)
    assert samples_table([record]) in done.output
    rows = {(row.n_sample, row.is_mixed) for row in record.rows}
    assert rows == {(1, False), (2, False), (1, True), (2, True), (5, True)}
    alone = [row for row in record.rows if not row.is_mixed and row.corpus == record.rows[0].corpus]
    head, _, *lines = samples_table([replace(record, rows=alone)]).splitlines()
    assert head == f"| Documents, m | {record.rows[0].corpus} | p |"
    assert lines[0].startswith("| 1, 1 |") and "Mixed" not in "".join(lines)
