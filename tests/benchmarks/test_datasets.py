from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.datasets import (
    TASKS,
    Dataset,
    DatasetError,
    checksum,
    open_dataset,
    read_documents,
    read_qrels,
    read_queries,
)
from benchmarks.runs import read_header, run_files


def test_a_folder_is_read_in_the_order_of_its_files(dataset: Dataset) -> None:
    documents = list(read_documents(dataset))
    assert [document.doc_id for document in documents] == ["cat", "kitten", "dog", "rocket"]
    assert documents[1].text == "kitten\n\nStory\n\nA kitten is a young cat and loves mats."
    assert (documents[1].title, documents[1].metadata) == ("kitten", {"year": 2020})
    assert read_qrels(dataset, "test") == {"dog": {"cat": 1}, "cat": {"kitten": 2, "dog": 1}}


def test_a_missing_dataset_raises_an_error_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"dataset proposals: .* holds no corpus.jsonl.gz, .*pass --data FOLDER"):
        open_dataset("proposals", tmp_path)
    with pytest.raises(DatasetError, match="'poems' is neither a folder nor one of proposals, clscisumm"):
        open_dataset("poems", tmp_path)


def test_a_split_that_cannot_be_measured_is_refused(dataset: Dataset) -> None:
    with pytest.raises(DatasetError, match="has no split 'train'; it has test, valid"):
        read_qrels(dataset, "train")
    with pytest.raises(DatasetError, match="query 'rocket' of split 'valid' has no relevant target in qrels"):
        read_qrels(dataset, "valid")
    with pytest.raises(DatasetError, match=r"query 'bird' is not in corpus.jsonl.gz \(1 of 2 are\)"):
        read_queries(dataset, ["cat", "bird"])


def test_a_checksum_changes_with_any_file(dataset: Dataset, beir_folder: Path) -> None:
    for one, path in ((dataset, dataset.splits), (open_dataset(str(beir_folder)), beir_folder / "qrels" / "test.tsv")):
        before = checksum(one)
        path.write_text(path.read_text() + "\n")
        assert before != checksum(one) and len(before) == 12


def add_queries(folder: Path, **texts: str) -> Dataset:
    lines = [json.dumps({"id": query_id, "sections": [{"text": text}]}) for query_id, text in texts.items()]
    (folder / "queries.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return open_dataset(str(folder))


def test_a_query_may_have_a_text_of_its_own(folder: Path) -> None:
    before = checksum(open_dataset(str(folder)))
    dataset = add_queries(folder, cat="a purring animal", draft="a barking one")
    queries = read_queries(dataset, ["draft", "dog", "cat"])
    assert [query.text[:9] for query in queries.values()] == ["a barking", "dog\n\nStor", "a purring"]
    assert checksum(dataset) != before
    with pytest.raises(DatasetError, match=r"query 'bird' is not in queries\.jsonl\.gz or corpus\.jsonl\.gz"):
        read_queries(dataset, ["cat", "bird"])


def test_files_of_a_task_have_its_name_wherever_they_are(folder: Path) -> None:
    same = folder.rename(folder.with_name("clscisumm"))
    assert open_dataset(str(same)).name == "clscisumm"
    assert add_queries(same, cat="a purring animal").name == "clscisumm_summaries"


def test_the_error_for_a_damaged_file_names_file_and_line(dataset: Dataset) -> None:
    dataset.corpus.write_bytes(b"not gzip")
    with pytest.raises(DatasetError, match=r"dataset pets, .*corpus.jsonl.gz: it is not a whole gzip file"):
        list(read_documents(dataset))
    dataset.qrels.write_text("query_id\tdoc_id\trelevance\ncat\tdog\tvery\n")
    with pytest.raises(DatasetError, match=r"dataset pets: line 2 of .*qrels.tsv has relevance 'very'"):
        read_qrels(dataset, "test")


def test_a_folder_of_beir_is_read_as_a_dataset(beir_folder: Path) -> None:
    dataset = open_dataset(str(beir_folder))
    assert [document.doc_id for document in read_documents(dataset)] == ["1", "2"]
    assert read_qrels(dataset, "dev") == {"1": {"2": 1}}
    assert read_queries(dataset, ["1"])["1"].text == "which cat sat"
    with pytest.raises(DatasetError, match="dataset tiny has no split 'train'; it has dev, test"):
        read_qrels(dataset, "train")


@pytest.mark.needs_data
def test_the_shared_corpora_are_those_that_were_measured() -> None:
    measured = {header["dataset"] for header in map(read_header, run_files()) if header["task"] == "retrieval"}
    here = {f"{name}@{checksum(open_dataset(name))}" for name in TASKS}
    assert {dataset for dataset in measured if dataset.split("@")[0] in TASKS} <= here


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "doc_id", "n_queries", "n_judged"),
    [
        ("proposals", "pep1", 149, 555),
        ("clscisumm", "A00-1020", 137, 276),
        ("clscisumm_summaries", "A00-1020", 87, 87),
        ("wikipedia_seealso", "32X", 369, 680),
        ("rfc", "rfc20", 243, 2901),
    ],
)
def test_the_shared_corpora_have_the_known_judgments(name: str, doc_id: str, n_queries: int, n_judged: int) -> None:
    dataset = open_dataset(name)
    qrels = read_qrels(dataset, "test")
    assert [document.doc_id for document in islice(read_documents(dataset), 1)] == [doc_id]
    assert (len(qrels), sum(len(targets) for targets in qrels.values())) == (n_queries, n_judged)
