from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.datasets import Dataset, DatasetError, checksum, open_dataset, read_documents, read_qrels, read_queries
from benchmarks.quick import LEAD_WORDS, Size, first_words, part_of, quick_part, sample_documents
from engine.text.document import Document
from tests.fakes import make_corpus, make_document

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
    folder = tmp_path / "large"
    folder.mkdir()
    with gzip.open(folder / "corpus.jsonl.gz", "wt") as file:
        for number in range(40):
            sections = [{"heading": f"Part {part}", "text": "some long words " * 20} for part in (1, 2)]
            file.write(json.dumps({"id": f"d{number}", "title": f"Title {number}", "sections": sections}) + "\n")
    rows = [
        f"d{n}\td{target}\t{rel}" for n in range(20) for target, rel in ((n + 1, 1), (n + 20, 2), (n + 90, 1), (5, 0))
    ]
    (folder / "qrels.tsv").write_text("\n".join(["query_id\tdoc_id\trelevance", *rows]))
    (folder / "splits.json").write_text(json.dumps({"test": [f"d{n}" for n in range(20)], "valid": ["d0"]}))
    return open_dataset(str(folder))


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
