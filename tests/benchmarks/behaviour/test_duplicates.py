"""Near-duplicates that are planted in a corpus, and the pairs that find them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.behaviour.duplicates import REPLACED, duplicates_table, main, planted_duplicates, scores_of
from benchmarks.behaviour.records import DuplicatesRecord
from benchmarks.datasets import DatasetError
from benchmarks.records import read_records
from engine.pairs import DocumentPair
from engine.views import Pairs
from tests.benchmarks.sections.corpora import write_long
from tests.fakes import make_corpus


def test_near_duplicates_have_the_share_of_other_words() -> None:
    corpus = make_corpus(20)
    made, planted = planted_duplicates(corpus, 4, seed=1)
    assert len(made) == 24 and [share for _, share in planted] == list(REPLACED)
    by_id = {one.doc_id: one for one in made}
    for original, share in planted:
        own, copy = by_id[original].text.split(), by_id["copy-of-" + original].text.split()
        differing = sum(one != other for one, other in zip(own, copy, strict=True))
        assert 0 < differing <= round(share * len(own))  # a word may be replaced by itself


def test_more_near_duplicates_than_documents_are_refused() -> None:
    with pytest.raises(DatasetError, match="5 near-duplicates need as many documents, not 4"):
        planted_duplicates(make_corpus(4), 5, seed=0)


def test_the_score_of_a_pair_that_is_not_listed_is_0() -> None:
    pairs = Pairs((DocumentPair("a", "copy-of-a", 0.7, 0.8),), 4, 0.5, 10, "similar", True, True, 1.0)
    assert scores_of(pairs, [("a", 0.1), ("b", 0.1)]) == [0.8, 0.0]


def test_a_quick_run_writes_a_record_and_its_table(tmp_path: Path) -> None:
    write_long(tmp_path / "small")
    arguments = [str(tmp_path / "small"), "--quick", "--documents", "12", "--out", str(tmp_path / "records")]
    run = CliRunner().invoke(main, arguments)
    assert run.exit_code == 0, run.output
    (record,) = read_records(tmp_path / "records")
    assert isinstance(record, DuplicatesRecord) and record.name == "duplicates-12-quick"
    assert len(record.scores) == record.n_pairs and len(record.planted["score"]) == 4
    assert duplicates_table([record]) in run.stdout
