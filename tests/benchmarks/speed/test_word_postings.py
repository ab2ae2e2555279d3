from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.records import read_records
from benchmarks.speed.word_postings import WordPostingsRecord, main, search, word_postings_table, write_postings
from engine.errors import QueryError
from engine.index import Index
from engine.store.durable import Checksum
from engine.store.postings import Postings


def test_all_postings_of_a_query_are_counted(real_folder: Path, tmp_path: Path) -> None:
    built = write_postings(real_folder, tmp_path / "p")
    with Index.open(real_folder) as index:
        names = index.snapshot.doc_ids()[:2]
        terms = [index.searcher().prepare(index.stored_query(name)).words for name in names]
    postings = Postings.open(tmp_path / "p", Checksum(built["size"], built["digest"]))
    searched = search(real_folder, tmp_path / "p", (built["size"], built["digest"]), {"real": names})["real"]
    (block,) = postings.words
    read = [int(np.isin(np.repeat(block.terms, np.diff(block.starts)), one.terms).sum()) for one in terms if one]
    assert searched["n_read"][0] == round(np.mean(read)) > 0
    assert len(searched["ms"]) == 2
    assert built["n_postings"]["words"] == len(block.weights)


def test_an_index_without_words_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_folder: Path) -> None:
    monkeypatch.setattr("benchmarks.speed.word_postings.build_postings", lambda _: None)
    with pytest.raises(QueryError, match="holds no words"):
        write_postings(real_folder, tmp_path / "p")


@pytest.mark.slow
def test_the_study_writes_a_record_and_its_table(real_folder: Path, tmp_path: Path) -> None:
    arguments = [str(real_folder), "--queries", "5", "--query-chunks", "4", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    (record,) = read_records(tmp_path)
    assert isinstance(record, WordPostingsRecord)
    assert word_postings_table([record]) in done.output
    assert (record.n_queries, record.n_documents) == ({"real": 5}, 240)
