from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.datasets import DATA, DatasetError
from benchmarks.probing.labelled import LABELLED, by_class, open_labelled, part_of, read_labelled
from tests.benchmarks.labelled_corpus import write_labelled


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_labelled(tmp_path / "places")


def test_a_folder_is_read_with_its_classes_and_splits(folder: Path) -> None:
    corpus = open_labelled(str(folder))
    assert (corpus.name, corpus.classes, len(corpus.doc_ids)) == ("places", ["sea", "sky"], 36)
    assert corpus.labels_of("valid") == ["sea", "sky"] * 4
    documents = list(read_labelled(corpus))
    assert [document.doc_id for document in documents] == corpus.doc_ids
    assert documents[1].text == "cloud plane wing over the river number 0"


def test_documents_of_no_split_are_passed_over(folder: Path) -> None:
    splits = json.loads((folder / "splits.json").read_text())
    splits["train"].remove("train-sea3")
    (folder / "splits.json").write_text(json.dumps({**splits, "spare": ["train-sea3"]}))
    corpus = open_labelled(str(folder))
    assert "train-sea3" not in corpus.labels
    assert "train-sea3" not in {document.doc_id for document in read_labelled(corpus)}


def test_a_part_has_so_many_of_each_class_and_depends_on_the_seed(folder: Path) -> None:
    corpus = open_labelled(str(folder))
    sizes = {"train": 3, "valid": 9, "test": 1}
    part = part_of(corpus, sizes, seed=1)
    assert {label: len(ids) for label, ids in by_class(part.splits["train"], part.labels).items()} == {
        "sea": 3,
        "sky": 3,
    }
    assert [len(part.splits[split]) for split in sizes] == [6, 8, 2]
    assert part == part_of(corpus, sizes, seed=1)
    assert part.splits["train"] != part_of(corpus, sizes, seed=2).splits["train"]


def test_files_that_do_not_fit_are_refused(folder: Path) -> None:
    splits = json.loads((folder / "splits.json").read_text())

    def said(**changed: list[str]) -> str:
        (folder / "splits.json").write_text(json.dumps({**splits, **changed}))
        with pytest.raises(DatasetError) as refused:
            list(read_labelled(open_labelled(str(folder))))
        return str(refused.value)

    assert "no documents for valid, it has train, valid, test" in said(valid=[])
    assert "'bird' of split 'test' has no line in labels.tsv" in said(test=["bird"])
    assert "'train-sea0' is in the splits 'train' and 'valid'" in said(valid=["train-sea0"])
    assert "class 'sky' has no training document" in said(train=["train-sea0"])
    with (folder / "labels.tsv").open("a") as file:
        file.write("lost\tsea\n")
    assert "1 documents of splits.json are not in corpus.jsonl.gz, the first is 'lost'" in said(test=["lost"])


def test_a_file_of_another_form_is_told_with_its_line(folder: Path) -> None:
    def said(labels: str, splits: str = "{}") -> str:
        (folder / "labels.tsv").write_text(labels)
        (folder / "splits.json").write_text(splits)
        with pytest.raises(DatasetError) as refused:
            open_labelled(str(folder))
        return str(refused.value).removeprefix(f"{folder}/")

    assert said("id,class\na,b\n") == "labels.tsv, line 1: the header has id,class; it must have doc_id <tab> label"
    assert said("").endswith("the header has no columns; it must have doc_id <tab> label")
    assert said("doc_id\tlabel\na\tb\nc\n").startswith("labels.tsv, line 3: doc_id 'c' and label None; both must")
    assert said("doc_id\tlabel\na\tb\n", "[1").startswith("splits.json is not JSON")
    assert said("doc_id\tlabel\na\tb\n", '{"train": 3}').startswith("splits.json must be an object of lists")


def test_an_unreadable_document_is_told_with_its_line(folder: Path) -> None:
    corpus = open_labelled(str(folder))
    with gzip.open(folder / "corpus.jsonl.gz", "at") as file:
        file.write("{broken\n")
    with pytest.raises(DatasetError, match=r"dataset places, .*:37.*; mend it, or leave that document out"):
        list(read_labelled(corpus))


def test_a_missing_corpus_says_what_to_pass(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"dataset news20: .* holds no corpus.jsonl.gz, labels.tsv, splits.json; pass"
    ):
        open_labelled("news20", tmp_path)
    with pytest.raises(DatasetError, match="'news' is neither a folder nor one of bbc_news, news20"):
        open_labelled("news", tmp_path)


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "n_classes", "sizes"), [("bbc_news", 5, [1641, 219, 212]), ("news20", 20, [9960, 1240, 7444])]
)
def test_the_shared_corpora_are_as_known(name: str, n_classes: int, sizes: list[int]) -> None:
    assert name in LABELLED
    corpus = open_labelled(name, DATA)
    assert (len(corpus.classes), [len(ids) for ids in corpus.splits.values()]) == (n_classes, sizes)
