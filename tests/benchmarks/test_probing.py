from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.datasets import DATA, DatasetError
from benchmarks.prepare import Prepared
from benchmarks.probing import (
    FEW_SHOT_C,
    INVERSE_PENALTIES,
    LABELLED,
    AnyVectors,
    Examples,
    encoder_vectors,
    few_shot,
    few_shot_rows,
    fit_probe,
    judge,
    open_labelled,
    read_labelled,
    tfidf_vectors,
)
from benchmarks.systems import BuildCost
from engine.index import Index
from tests.benchmarks.labelled_corpus import write_labelled
from tests.fakes import FakeEncoder

pytest.importorskip("sklearn")
sparse = pytest.importorskip("scipy.sparse")


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
    # Documents of other splits are left out.
    splits = json.loads((folder / "splits.json").read_text())
    splits["train"].remove("train-sea3")
    (folder / "splits.json").write_text(json.dumps({**splits, "spare": ["train-sea3"]}))
    corpus = open_labelled(str(folder))
    assert "train-sea3" not in {*corpus.labels, *(document.doc_id for document in read_labelled(corpus))}


def test_files_that_do_not_fit_are_refused(folder: Path) -> None:
    splits = json.loads((folder / "splits.json").read_text())

    def error_of(**changed: list[str]) -> str:
        (folder / "splits.json").write_text(json.dumps({**splits, **changed}))
        with pytest.raises(DatasetError) as refused:
            list(read_labelled(open_labelled(str(folder))))
        return str(refused.value)

    assert "no documents for valid, it has train, valid, test" in error_of(valid=[])
    assert "'bird' of split 'test' has no line in labels.tsv" in error_of(test=["bird"])
    assert "'train-sea0' is in the splits 'train' and 'valid'" in error_of(valid=["train-sea0"])
    assert "class 'sky' has no training document" in error_of(train=["train-sea0"])
    with (folder / "labels.tsv").open("a") as file:
        file.write("lost\tsea\n")
    assert "1 documents of splits.json are not in corpus.jsonl.gz, the first is 'lost'" in error_of(test=["lost"])
    with gzip.open(folder / "corpus.jsonl.gz", "at") as file:
        file.write("{broken\n")
    assert re.search(r"dataset places, .*:37.*; mend it, or leave that document out", error_of())


def test_the_error_for_a_malformed_file_names_file_and_line(folder: Path) -> None:
    def error_of(labels: str, splits: str = "{}") -> str:
        (folder / "labels.tsv").write_text(labels)
        (folder / "splits.json").write_text(splits)
        with pytest.raises(DatasetError) as refused:
            open_labelled(str(folder))
        return str(refused.value).removeprefix(f"{folder}/")

    assert error_of("id,class\na,b\n") == "labels.tsv, line 1: the header has id,class; it must have doc_id <tab> label"
    assert error_of("").endswith("the header has no columns; it must have doc_id <tab> label")
    assert error_of("doc_id\tlabel\na\tb\nc\n").startswith("labels.tsv, line 3: doc_id 'c' and label None; both must")
    assert error_of("doc_id\tlabel\na\tb\n", "[1").startswith("splits.json is not JSON")
    assert error_of("doc_id\tlabel\na\tb\n", '{"train": 3}').startswith("splits.json must be an object of lists")


def test_a_missing_corpus_raises_an_error_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"news20: .* holds no corpus.jsonl.gz, labels.tsv, splits.json; pass"):
        open_labelled("news20", tmp_path)
    with pytest.raises(DatasetError, match="'news' is neither a folder nor one of bbc_news, news20"):
        open_labelled("news", tmp_path)


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "n_classes", "sizes"), [("bbc_news", 5, [1641, 219, 212]), ("news20", 20, [9960, 1240, 7444])]
)
def test_the_shared_corpora_have_the_known_classes_and_sizes(name: str, n_classes: int, sizes: list[int]) -> None:
    assert name in LABELLED
    corpus = open_labelled(name, DATA)
    assert (len(corpus.classes), [len(ids) for ids in corpus.splits.values()]) == (n_classes, sizes)


TEXTS = {"one": "zebra zebra lion", "two": "zebra tiger", "three": "the lion tiger", "four": "zebra wolf whale"}
TRAIN = ["one", "two", "three"]


def tfidf_by_hand(text: str) -> dict[str, float]:
    """(1 + ln tf)(1 + ln((1 + n) / (1 + df))), unit length; a word of one training text alone has no place."""
    documents = [TEXTS[doc_id].split() for doc_id in TRAIN]
    weights = {}
    for word in set(text.split()) - {"the"}:
        df = sum(word in document for document in documents)
        if df > 1:
            weights[word] = (1 + math.log(text.split().count(word))) * (1 + math.log((1 + len(TRAIN)) / (1 + df)))
    norm = math.sqrt(sum(weight**2 for weight in weights.values()))
    return {word: weight / norm for word, weight in weights.items()}


def dense(vectors: AnyVectors) -> NDArray[np.float32]:
    return vectors if isinstance(vectors, np.ndarray) else vectors.toarray()


def test_tfidf_equals_the_equation() -> None:
    vectors = tfidf_vectors(TEXTS, TRAIN)
    words = ["lion", "tiger", "zebra"]  # scikit-learn's columns are sorted
    for doc_id, row in vectors.rows.items():
        expected = tfidf_by_hand(TEXTS[doc_id])
        found = dense(vectors.vectors)[row]
        assert dict(zip(words, found, strict=True)) == pytest.approx({word: expected.get(word, 0.0) for word in words})


def test_an_encoders_vectors_are_those_of_its_index(built_folder: Path) -> None:
    with Index.open(built_folder, encoder=FakeEncoder()) as index:
        vectors = encoder_vectors(Prepared(index, "fake@0", BuildCost(1.0)))
        doc_ids, rows = index.document_vectors()
        expected = rows[::-1].copy()
    assert (vectors.system, vectors.encoder) == ("document", "fake@0")
    np.testing.assert_array_equal(vectors.of(doc_ids[::-1]), expected)


def cloud(n: int, seed: int, noise: float = 0.6) -> Examples:
    """Unit rows of three classes."""
    draw = np.random.default_rng(seed)
    classes = np.arange(n) % 3
    rows = np.eye(3, 5)[classes] + noise * draw.standard_normal((n, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Examples(rows.astype(np.float32), [f"class{number}" for number in classes])


def test_c_is_the_smallest_of_those_that_are_best_on_valid() -> None:
    from sklearn.linear_model import LogisticRegression

    train, valid = cloud(60, 0), cloud(30, 1)
    right = []
    for c in INVERSE_PENALTIES:
        predicted = LogisticRegression(C=c, max_iter=5000).fit(train.vectors, train.labels).predict(valid.vectors)
        right.append(sum(one == other for one, other in zip(predicted, valid.labels, strict=True)))
    assert fit_probe(train, valid)[1] == INVERSE_PENALTIES[right.index(max(right))]


def test_more_labels_than_there_are_is_refused() -> None:
    with pytest.raises(DatasetError, match=r"5 documents of each class were asked for, 'b' has 2 to learn from"):
        few_shot_rows(["a"] * 5 + ["b"] * 2, 5, 1, seed=0)


def test_few_shot_fits_a_probe_to_each_draw() -> None:
    from sklearn.linear_model import LogisticRegression

    train, test = cloud(60, 0), cloud(40, 2)
    draws = few_shot(train, test, 5, 3, seed=4)
    for rows, accuracy, macro_f1 in zip(
        few_shot_rows(train.labels, 5, 3, 4), draws.accuracy, draws.macro_f1, strict=True
    ):
        probe = LogisticRegression(C=FEW_SHOT_C).fit(train.vectors[rows], [train.labels[row] for row in rows])
        expected = judge(test.labels, probe.predict(test.vectors))
        assert (accuracy, macro_f1) == (expected["accuracy"], expected["macro_f1"])
