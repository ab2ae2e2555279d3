"""Datasets in a folder: reading them, cutting quick parts from them, and indexing them."""

import gzip
import json
from dataclasses import replace
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
from benchmarks.fetching.sources import corpus_document
from benchmarks.prepare import index_documents, label_of
from benchmarks.quick import LEAD_WORDS, Size, first_words, part_of, quick_part, sample_documents
from benchmarks.runs import read_header, run_files
from benchmarks.speed import growth
from engine.index import Index
from engine.text.document import Document
from indexer.building.builder import build
from tests.benchmarks.corpora import write_dataset
from tests.benchmarks.made_runs import error_of
from tests.fakes import FakeEncoder, make_corpus, make_document


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


DOCUMENT = replace(make_document("a", [("One", "two three"), ("Four", "five six")]), pages=(0, 8, 20))


@pytest.mark.parametrize("n_words", [1, 2, 3, 4, 5])
def test_the_first_words_stay_and_sections_cover_them(n_words: int) -> None:
    cut = first_words(DOCUMENT, n_words)
    assert cut.text.split() == DOCUMENT.text.split()[:n_words]
    assert DOCUMENT.text.startswith(cut.text)
    assert [section.heading for section in cut.sections] == ["One", "Four"][: 1 if n_words < 4 else 2]
    assert (cut.sections[0].start, cut.sections[-1].stop) == (0, len(cut.text))
    assert cut.pages == tuple(page for page in (0, 8, 20) if page < len(cut.text))


def test_a_part_is_the_title_the_lead_or_the_whole() -> None:
    assert first_words(DOCUMENT, 6) is DOCUMENT and first_words(DOCUMENT, 100) is DOCUMENT
    long = replace(make_document("b", " ".join(f"w{number}" for number in range(500))), title="A short title")
    assert part_of(long, "whole") is long
    assert part_of(long, "lead").text.split() == [f"w{number}" for number in range(LEAD_WORDS)]
    title = part_of(long, "title")
    assert (title.doc_id, title.text, len(title.sections)) == ("b", "A short title", 1)
    assert part_of(replace(long, title=" "), "title").text.split() == [f"w{number}" for number in range(10)]


SIZE = Size(n_queries=4, n_targets=2, n_documents=15, n_words=6)


@pytest.fixture
def large(tmp_path: Path) -> Dataset:
    """40 documents; each of the first 20 is a query with three relevant targets, one of them absent."""
    sections = [(f"Part {part}", "some long words " * 20) for part in (1, 2)]
    documents = [corpus_document(f"d{number}", f"Title {number}", sections, {}) for number in range(40)]
    judged = [
        (f"d{n}", f"d{target}", rel)
        for n in range(20)
        for target, rel in ((n + 1, 1), (n + 20, 2), (n + 90, 1), (5, 0))
    ]
    splits = {"test": [f"d{n}" for n in range(20)], "valid": ["d0"]}
    return write_dataset(tmp_path / "large", documents, judged, splits)


def test_a_part_holds_queries_their_targets_and_others(large: Dataset, tmp_path: Path) -> None:
    part = quick_part(large, "test", tmp_path / "work", seed=0, size=SIZE)
    qrels = read_qrels(part, "test")
    kept = [document.doc_id for document in read_documents(part)]
    assert (part.name, len(qrels), len(kept)) == ("large_quick", 4, 15)
    assert all(
        targets == {f"d{int(query[1:]) + 1}": 1, f"d{int(query[1:]) + 20}": 2} for query, targets in qrels.items()
    )
    assert {*qrels, *(target for targets in qrels.values() for target in targets)} <= set(kept)
    assert kept == [document.doc_id for document in read_documents(large) if document.doc_id in kept]


def test_documents_are_cut_after_words_of_their_first_sections(large: Dataset, tmp_path: Path) -> None:
    part = quick_part(large, "test", tmp_path, seed=0, size=SIZE)
    (text,) = {document.text.partition("\n\n")[2] for document in read_documents(part)}
    assert text == "Part 1\n\nsome long"  # four words stand in title and heading
    longer = quick_part(large, "test", tmp_path, seed=0, size=Size(n_words=69))
    document = next(read_documents(longer))
    assert document.text.endswith("words\n\nPart 2\n\nsome long words")
    assert document.title == "Title 0"


def test_the_same_seed_gives_the_same_part(large: Dataset, tmp_path: Path) -> None:
    first, again = (quick_part(large, "test", tmp_path / name, seed=3, size=SIZE) for name in ("a", "b"))
    other = quick_part(large, "test", tmp_path / "c", seed=4, size=SIZE)
    assert checksum(first) == checksum(again) != checksum(other)
    assert list(read_qrels(first, "test")) != list(read_qrels(other, "test"))


def test_a_part_is_whole_while_it_is_rewritten(large: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = quick_part(large, "test", tmp_path, seed=0, size=SIZE)
    read = []

    def first_words_beside_a_reader(document: Document, n_words: int) -> Document:
        read.append(sum(1 for _ in read_documents(part)))
        return first_words(document, n_words)

    monkeypatch.setattr("benchmarks.quick.first_words", first_words_beside_a_reader)
    quick_part(large, "test", tmp_path, seed=0, size=SIZE)
    assert read == [SIZE.n_documents] * SIZE.n_documents


def test_a_part_of_beir_keeps_queries_of_their_own(beir_folder: Path, tmp_path: Path) -> None:
    part = quick_part(open_dataset(str(beir_folder)), "dev", tmp_path, seed=0)
    assert [document.text[:10] for document in read_documents(part)] == ["Rocket eng", "The cat sa"]
    assert read_queries(part, ["1"])["1"].text == "which cat sat"


def test_a_split_whose_targets_are_all_absent_is_refused(large: Dataset, tmp_path: Path) -> None:
    large.qrels.write_text("query_id\tdoc_id\trelevance\nd0\td99\t1\n")
    with pytest.raises(
        DatasetError, match="dataset large: no query of split 'valid' has a relevant target in its corpus"
    ):
        quick_part(large, "valid", tmp_path, seed=0)


def test_a_sample_is_seeded_and_keeps_the_order_of_the_corpus() -> None:
    corpus = make_corpus(40)
    sample = sample_documents(iter(corpus), 10, seed=3)
    assert sample == sample_documents(iter(corpus), 10, seed=3) != sample_documents(iter(corpus), 10, seed=4)
    names = [document.doc_id for document in sample]
    assert len(set(names)) == 10 and names == sorted(names)
    assert sample_documents(iter(corpus), 99, seed=3) == corpus


def test_every_document_is_as_likely_as_any_other() -> None:
    corpus = make_corpus(10)
    drawn = [document.doc_id for seed in range(400) for document in sample_documents(corpus, 3, seed)]
    # 120 times each on average; five standard deviations of a binomial are 46.
    assert all(74 < drawn.count(document.doc_id) < 166 for document in corpus)


def test_an_encoder_is_named_with_its_fingerprint() -> None:
    assert label_of("folder/of/my model", "f" * 32) == "my_model@ffffffffffff"


def test_growth_refuses_an_index_of_words_alone(tmp_path: Path) -> None:
    build(tmp_path / "words.lm", make_corpus(3), encode="none")
    error = error_of(growth.main, tmp_path / "words.lm", "--out", tmp_path)
    assert "holds words alone and no vectors; add them: longmatch index" in error


def test_documents_of_the_same_name_are_replaced(tmp_path: Path) -> None:
    index_documents(tmp_path / "a.lm", make_corpus(5), FakeEncoder())
    index_documents(tmp_path / "a.lm", [make_document("doc003", "another text")], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        assert (index.n_documents, index.document("doc003").text) == (5, "another text")


def test_a_document_without_text_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="1 documents were not indexed, the first is 'empty': empty: no text"):
        index_documents(tmp_path / "a.lm", [*make_corpus(5), make_document("empty", " ")], FakeEncoder())
