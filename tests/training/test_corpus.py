"""Training corpora: their files, judgments, labels and splits."""

import hashlib
import json
from pathlib import Path

import pytest

from engine.errors import TrainingError
from engine.training.corpus import (
    read_judgments,
    read_splits,
    read_training_corpus,
    readable,
    segmented,
)
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


def test_bad_pairs_are_dropped(tmp_path: Path) -> None:
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


def test_unreadable_documents_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path, DOCUMENTS[:2], pairs={"a": {"b": 1, "void": 1}, "void": {"a": 1}})
    with (folder / "corpus.jsonl").open("a") as lines:
        lines.write('{"_id": "void", "text": " "}\n{"text": "nameless"}\n{\n{"_id": "last", "text": "read"}\n')
    corpus = read_training_corpus(folder)
    assert (list(corpus.documents), corpus.n_unreadable) == (["a", "b", "corpus.jsonl#4", "last"], 2)
    assert corpus.pairs == {"a": {"b": 1}}


def test_pairs_of_other_documents_are_refused(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path, DOCUMENTS, pairs={"x": {"a": 1}, "a": {"f": 1}}, splits={"valid": ["f"]})
    with pytest.raises(TrainingError) as raised:
        read_training_corpus(folder)
    assert str(raised.value) == (
        "none of the 2 queries of train_pairs.tsv makes a pair with a document of the corpus (6 documents, "
        "1 held out); name documents by their ids in the corpus"
    )


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


def test_documents_without_a_token_are_not_readable() -> None:
    blank = make_document("void", "  ")
    assert readable(FakeEncoder(), [DOCUMENTS[0], blank, DOCUMENTS[1]]) == [
        FakeEncoder().segment(document) for document in DOCUMENTS[:2]
    ]
    assert segmented(FakeEncoder(), blank) is None


FORM = "query_id <tab> doc_id [<tab> relevance]"


def judgments(folder: Path, content: str) -> Path:
    path = folder / "qrels.tsv"
    path.write_bytes(content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("relevance\tdoc_id\tnote\tquery_id\n2\tb\tx\ta\n0\tc\t\ta\n", {"a": {"b": 2, "c": 0}}),
        ("relevance\tdoc_id\tquery_id\n-1\ta\tb\n", {"b": {"a": -1}}),
        ("query_id\tdoc_id\na\tb\n", {"a": {"b": 1}}),
        ("query_id\tdoc_id\trelevance\na\tb\t\n", {"a": {"b": 1}}),
        ('query_id\tdoc_id\r\n"a\tb c\r\né\t2\r\n', {'"a': {"b c": 1}, "é": {"2": 1}}),
        ("\ufeffquery_id\tdoc_id\na\tb\n", {"a": {"b": 1}}),
    ],
    ids=[
        "columns in any order",
        "a negative relevance",
        "no relevance is 1",
        "an empty relevance is 1",
        "ids verbatim",
        "a byte order mark",
    ],
)
def test_judgments_are_read_by_the_names_of_columns(
    tmp_path: Path, content: str, expected: dict[str, dict[str, int]]
) -> None:
    assert read_judgments(judgments(tmp_path, content)) == expected


OTHER_SPLITS = '{path} must be an object of lists of query ids, as {{"train": ["a"], "valid": ["b"]}}'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("qrels.tsv", None, f"there is no file {{path}}; it should name pairs as {FORM}"),
        ("qrels.tsv", "", f"{{path}} has the columns none, not query_id and doc_id; its first line must be: {FORM}"),
        (
            "qrels.tsv",
            "query\tdoc_id\na\tb\n",
            f"{{path}} has the columns query, doc_id, not query_id; its first line must be: {FORM}",
        ),
        (
            "qrels.tsv",
            "query_id\tdoc_id\na\tb\na\n",
            f"line 3 of {{path}} names the query 'a' and the target None; it must be: {FORM}",
        ),
        (
            "qrels.tsv",
            "query_id\tdoc_id\n\tb\n",
            f"line 2 of {{path}} names the query '' and the target 'b'; it must be: {FORM}",
        ),
        (
            "qrels.tsv",
            "query_id\tdoc_id\trelevance\na\tb\t1\na\tc\t0.5\n",
            "line 3 of {path} has relevance '0.5'; it must be a whole number",
        ),
        (
            "qrels.tsv",
            "query_id\tdoc_id\na\t\xff\n",
            "{path} cannot be read as judgments ('utf-8' codec can't decode byte 0xff in position 18: invalid start "
            f"byte); write it in UTF-8 as {FORM}",
        ),
        ("splits.json", None, "there is no file {path}; it should name the query ids of each split"),
        (
            "splits.json",
            "{",
            "{path} is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("splits.json", "[]", OTHER_SPLITS),
        ("splits.json", '{"train": "a"}', OTHER_SPLITS),
        ("splits.json", '{"train": [1, 2]}', OTHER_SPLITS),
        ("splits.json", '{"train": {"a": 1}}', OTHER_SPLITS),
        (
            "corpus.jsonl",
            None,
            "{folder} holds none of corpus.jsonl, corpus.jsonl.gz; put the documents there, one a line",
        ),
        ("corpus.jsonl", "{\n[]\n", "{path} holds no readable document (1 not read)"),
    ],
)
def test_a_file_that_is_missing_or_malformed_is_an_error(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    with pytest.raises(TrainingError) as raised:
        {"qrels.tsv": read_judgments, "splits.json": read_splits}.get(name, lambda _: read_training_corpus(tmp_path))(
            path
        )
    assert str(raised.value) == message.format(path=path, folder=tmp_path)


def test_splits_and_requested_judgments_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "splits.json").write_text('{"train": ["a", "b"], "valid": []}')
    assert read_splits(tmp_path / "splits.json") == {"train": ["a", "b"], "valid": []}
    path = judgments(tmp_path, "query_id\tdoc_id\na\tb\nc\td\n")
    assert list(read_judgments(path, ["c", "z", "a"]).items()) == [("c", {"d": 1}), ("z", {}), ("a", {"b": 1})]
