"""Training corpora: documents, pairs and splits read from a folder, without the held-out documents."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from engine.errors import DocumentError, TrainingError
from engine.training.corpus import SegmentedCorpus, read_training_corpus
from tests.fakes import FakeEncoder, make_document
from tests.training.made import write_corpus

DOCUMENTS = [make_document(name, f"text of {name}", metadata={"area": name > "c"}) for name in "abcdef"]
PAIRS = {"a": {"b": 2, "c": 1}, "d": {"e": 1}}


def test_documents_alone_are_a_corpus_without_pairs(tmp_path: Path) -> None:
    corpus = read_training_corpus(write_corpus(tmp_path / "papers", DOCUMENTS))
    assert corpus.name == "papers"
    assert [document.text for document in corpus.documents.values()] == [one.text for one in DOCUMENTS]
    assert (corpus.pairs, corpus.related, corpus.valid, corpus.held_out) == ({}, {}, {}, frozenset())
    assert (corpus.n_pairs, corpus.n_unreadable, corpus.licence) == (0, 0, "")
    assert corpus.trainable == list("abcdef")


def test_pairs_come_from_train_pairs_and_relations_from_the_qrels_too(tmp_path: Path) -> None:
    qrels = {"a": {"b": 1, "f": 1, "e": 0, "a": 1}, "b": {"a": 1}}
    corpus = read_training_corpus(write_corpus(tmp_path, DOCUMENTS, pairs=PAIRS, qrels=qrels))
    assert corpus.pairs == PAIRS
    assert corpus.n_pairs == 3
    assert corpus.related == {"a": {"b": 2, "c": 1, "f": 1}, "d": {"e": 1}}


def test_a_pair_of_relevance_0_or_of_a_document_with_itself_is_dropped(tmp_path: Path) -> None:
    pairs = {"a": {"a": 1, "b": 1, "c": 0, "e": -1}, "d": {"d": 1}}
    assert read_training_corpus(write_corpus(tmp_path, DOCUMENTS, pairs=pairs)).pairs == {"a": {"b": 1}}


def test_queries_of_other_splits_are_in_no_pair_as_query_or_target(tmp_path: Path) -> None:
    splits = {"train": ["a", "d"], "valid": ["c"], "test": ["e"], "test_hard": ["f"]}
    pairs = {"a": {"b": 1, "c": 1}, "c": {"a": 1}, "d": {"e": 1}, "f": {"b": 1}}
    corpus = read_training_corpus(write_corpus(tmp_path, DOCUMENTS, pairs=pairs, splits=splits))
    assert corpus.pairs == {"a": {"b": 1}}
    assert corpus.held_out == {"c", "e", "f"}
    assert corpus.trainable == ["a", "b", "d"]


def test_valid_queries_are_documents_with_a_relevant_target(tmp_path: Path) -> None:
    splits = {"train": ["a"], "valid": ["c", "d", "gone", "e", "f"]}
    qrels = {"c": {"a": 2, "b": 0, "c": 1}, "d": {"a": 0}, "gone": {"a": 1}, "a": {"b": 1}, "f": {"gone": 1}}
    corpus = read_training_corpus(write_corpus(tmp_path, DOCUMENTS, pairs=PAIRS, qrels=qrels, splits=splits))
    assert corpus.valid == {"c": {"a": 2}, "f": {"gone": 1}}
    assert list(corpus.valid) == ["c", "f"]


def test_the_files_of_a_task_are_found_by_their_suffix(tmp_path: Path) -> None:
    write_corpus(tmp_path, DOCUMENTS, pairs=PAIRS)
    splits = {"train": ["b"], "valid": ["f"]}
    write_corpus(tmp_path, DOCUMENTS, pairs={"b": {"c": 1}}, qrels={"f": {"a": 1}}, splits=splits, suffix="_citing")
    corpus = read_training_corpus(tmp_path, suffix="_citing")
    assert (corpus.pairs, corpus.valid, corpus.held_out) == ({"b": {"c": 1}}, {"f": {"a": 1}}, {"f"})
    assert read_training_corpus(tmp_path).pairs == PAIRS


def test_a_label_makes_pairs_of_documents_that_are_not_held_out(tmp_path: Path) -> None:
    splits = {"train": [], "valid": ["e"]}
    qrels = {"e": {"f": 1}, "d": {"a": 1}}
    folder = write_corpus(tmp_path, DOCUMENTS, qrels=qrels, splits=splits)
    corpus = read_training_corpus(folder, label="area")
    assert {one: dict(found) for one, found in corpus.pairs.items()} == {
        "a": {"b": 1, "c": 1},
        "b": {"a": 1, "c": 1},
        "c": {"a": 1, "b": 1},
        "d": {"f": 1},
        "f": {"d": 1},
    }
    assert corpus.n_pairs == 8
    assert dict(corpus.related["d"]) == {"f": 1, "a": 1}
    assert corpus.related["a"] is corpus.pairs["a"]  # a copy for each would be quadratic


def test_a_file_of_pairs_takes_precedence_over_a_label(tmp_path: Path) -> None:
    assert read_training_corpus(write_corpus(tmp_path, DOCUMENTS, pairs=PAIRS), label="area").pairs == PAIRS


def test_unreadable_documents_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path, DOCUMENTS[:2], pairs={"a": {"b": 1, "void": 1}, "void": {"a": 1}})
    with (folder / "corpus.jsonl").open("a") as lines:
        lines.write('{"_id": "void", "text": " "}\n{"text": "nameless"}\n{\n{"_id": "last", "text": "read"}\n')
    corpus = read_training_corpus(folder)
    assert (list(corpus.documents), corpus.n_unreadable) == (["a", "b", "last"], 3)
    assert corpus.pairs == {"a": {"b": 1}}


def test_pairs_of_other_documents_are_refused(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path, DOCUMENTS, pairs={"x": {"a": 1}, "a": {"f": 1}}, splits={"valid": ["f"]})
    with pytest.raises(TrainingError) as raised:
        read_training_corpus(folder)
    assert str(raised.value) == (
        "none of the 2 queries of train_pairs.tsv makes a pair with a document of the corpus (6 documents, "
        "1 held out); name documents by their ids in the corpus"
    )


def test_a_folder_without_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as raised:
        read_training_corpus(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path} holds none of corpus.jsonl, corpus.jsonl.gz; put the documents there, one a line"
    )


def test_a_corpus_without_a_readable_document_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("{\n[]\n")
    with pytest.raises(TrainingError) as raised:
        read_training_corpus(tmp_path)
    assert str(raised.value) == f"{tmp_path}/corpus.jsonl holds no readable document (2 lines were not read)"


@pytest.mark.parametrize(
    ("readme", "licence"),
    [
        ("# Papers\n\n## Licence\n\nCC BY 4.0,\nsee the site.\n\nMore.\n", "CC BY 4.0, see the site."),
        ("# License\nMIT\n# Else\n", "MIT"),
        ("# Papers\nNo word of it.\n", ""),
    ],
)
def test_the_licence_is_the_first_paragraph_below_its_heading(tmp_path: Path, readme: str, licence: str) -> None:
    (write_corpus(tmp_path, DOCUMENTS) / "README.md").write_text(readme)
    assert read_training_corpus(tmp_path).licence == licence


def test_the_checksum_is_that_of_all_files_that_were_read(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path, DOCUMENTS, pairs=PAIRS)
    digest = hashlib.sha256()
    for name in ("corpus.jsonl", "train_pairs.tsv"):
        digest.update(name.encode() + b"\0" + hashlib.sha256((folder / name).read_bytes()).digest())
    before = read_training_corpus(folder).checksum
    assert before == digest.hexdigest()[:12]
    (folder / "splits.json").write_text(json.dumps({"valid": ["f"]}))
    assert read_training_corpus(folder).checksum != before


def test_each_document_is_segmented_once_on_first_access() -> None:
    corpus = SegmentedCorpus({document.doc_id: document for document in DOCUMENTS}, FakeEncoder())
    assert corpus["b"] is corpus["b"]
    assert corpus["b"] == FakeEncoder().segment(DOCUMENTS[1])
    assert (list(corpus), len(corpus)) == (list("abcdef"), 6)


def test_documents_without_a_token_are_not_readable() -> None:
    documents = {"a": DOCUMENTS[0], "void": make_document("void", "  "), "b": DOCUMENTS[1]}
    corpus = SegmentedCorpus(documents, FakeEncoder())
    assert [segmented.document.doc_id for segmented in corpus.readable()] == ["a", "b"]
    with pytest.raises(DocumentError, match=r"^void: no text that the tokenizer can read$"):
        corpus["void"]
