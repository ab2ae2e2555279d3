from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.datasets import DatasetError
from benchmarks.scisumm.collection import Collection, citing_ids, open_scisumm, quick_part, read_collection
from tests.benchmarks.scisumm_folder import N_CITING, TOPICS, write_scisumm


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_scisumm(tmp_path / "data")


def test_what_belongs_to_a_summary_is_read(data: Path) -> None:
    scisumm = open_scisumm("small", data)
    assert list(scisumm.summaries) == ["sum:parsing", "sum:speech"]
    assert scisumm.summaries["sum:speech"].text == "audio phone signal method"
    assert scisumm.reference == {"sum:parsing": {"parsing": 1}, "sum:speech": {"speech": 1}}
    assert list(scisumm.citing["sum:parsing"]) == [f"parsing{number}" for number in range(N_CITING)]
    assert list(scisumm.citances["sum:speech"]) == ["cit:speech:0", "cit:speech:1"]


def test_collections_are_whole_whatever_the_split(data: Path) -> None:
    scisumm = open_scisumm("small", data)
    papers = [paper.doc_id for paper in read_collection(scisumm, Collection.PAPERS)]
    assert len(papers) == len(TOPICS) * (1 + N_CITING)
    assert citing_ids(scisumm) == [doc_id for doc_id in papers if doc_id not in TOPICS]
    assert len(list(read_collection(scisumm, Collection.CITANCES))) == 2 * len(TOPICS)


def test_a_quick_part_holds_all_of_a_few_topics(data: Path) -> None:
    whole = open_scisumm("cl2018train", data)
    part = quick_part(whole, 2, 3, seed=1)
    topics = [query_id.removeprefix("sum:") for query_id in part.summaries]
    assert len(topics) == 2
    papers = {paper.doc_id: paper.text for paper in read_collection(part, Collection.PAPERS)}
    assert sorted(papers) == sorted(name for topic in topics for name in (topic, *whole.citing[f"sum:{topic}"]))
    assert papers[topics[0]] == TOPICS[topics[0]]  # three words
    assert len(list(read_collection(part, Collection.CITANCES))) == 4
    assert part.name == f"clscisumm@{whole.checksum}-cl2018train-quick2x3-1"
    assert quick_part(whole, 2, 3, seed=1) == part


def test_files_that_do_not_fit_are_refused(data: Path) -> None:
    with pytest.raises(DatasetError, match="clscisumm has no split 'test'; it has cl2018train, small"):
        open_scisumm("test", data)
    splits = data / "clscisumm" / "splits.json"
    splits.write_text(json.dumps({"small": ["sum:parsing", "sum:nobody"]}))
    with pytest.raises(
        DatasetError, match=r"summary 'sum:nobody' of split 'small' is not in queries.jsonl.gz, or has no"
    ):
        open_scisumm("small", data)
    (data / "clscisumm" / "citances.jsonl.gz").unlink()
    with pytest.raises(
        DatasetError, match=r"holds no citances.jsonl.gz; pass --data FOLDER, where FOLDER/clscisumm does"
    ):
        open_scisumm("small", data)


def test_a_checksum_changes_with_any_file(data: Path) -> None:
    before = open_scisumm("small", data).checksum
    (data / "clscisumm" / "qrels_citing.tsv").write_text("query_id\tdoc_id\trelevance\n")
    changed = open_scisumm("small", data)
    assert changed.checksum != before
    assert changed.citing == {"sum:parsing": {}, "sum:speech": {}}
