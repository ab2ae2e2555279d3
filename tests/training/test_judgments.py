"""Files of judgments and splits, and the errors for files that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import TrainingError
from engine.training.judgments import read_judgments, read_splits

FORM = "query_id <tab> doc_id [<tab> relevance]"


def judgments(folder: Path, content: str) -> Path:
    path = folder / "qrels.tsv"
    path.write_bytes(content.encode())
    return path


def test_pairs_are_read_with_their_relevance_whatever_the_order_of_columns(tmp_path: Path) -> None:
    path = judgments(tmp_path, "relevance\tdoc_id\tnote\tquery_id\n2\tb\tx\ta\n0\tc\t\ta\n-1\ta\ty\tb\n")
    assert read_judgments(path) == {"a": {"b": 2, "c": 0}, "b": {"a": -1}}


@pytest.mark.parametrize("content", ["query_id\tdoc_id\na\tb\n", "query_id\tdoc_id\trelevance\na\tb\t\n"])
def test_a_pair_without_relevance_has_1(tmp_path: Path, content: str) -> None:
    assert read_judgments(judgments(tmp_path, content)) == {"a": {"b": 1}}


def test_ids_are_read_verbatim(tmp_path: Path) -> None:
    path = judgments(tmp_path, 'query_id\tdoc_id\r\n"a\tb c\r\né\t2\r\n')
    assert read_judgments(path) == {'"a': {"b c": 1}, "é": {"2": 1}}


def test_a_byte_order_mark_belongs_to_no_column(tmp_path: Path) -> None:
    assert read_judgments(judgments(tmp_path, "\ufeffquery_id\tdoc_id\na\tb\n")) == {"a": {"b": 1}}


def test_only_requested_queries_are_kept_in_order_even_without_a_target(tmp_path: Path) -> None:
    path = judgments(tmp_path, "query_id\tdoc_id\na\tb\nc\td\n")
    assert list(read_judgments(path, ["c", "z", "a"]).items()) == [("c", {"d": 1}), ("z", {}), ("a", {"b": 1})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", f"{{path}} has the columns none, not query_id and doc_id; its first line must be: {FORM}"),
        (
            "query\tdoc_id\na\tb\n",
            f"{{path}} has the columns query, doc_id, not query_id; its first line must be: {FORM}",
        ),
        (
            "query_id\tdoc_id\na\tb\na\n",
            f"line 3 of {{path}} names the query 'a' and the target None; it must be: {FORM}",
        ),
        ("query_id\tdoc_id\n\tb\n", f"line 2 of {{path}} names the query '' and the target 'b'; it must be: {FORM}"),
        (
            "query_id\tdoc_id\trelevance\na\tb\t1\na\tc\t0.5\n",
            "line 3 of {path} has relevance '0.5'; it must be a whole number",
        ),
    ],
    ids=["empty", "column", "short", "nobody", "number"],
)
def test_a_malformed_file_raises_an_error_that_names_the_line(tmp_path: Path, content: str, message: str) -> None:
    path = judgments(tmp_path, content)
    with pytest.raises(TrainingError) as raised:
        read_judgments(path)
    assert str(raised.value) == message.format(path=path)


def test_a_missing_file_raises_an_error_with_the_expected_form(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as raised:
        read_judgments(tmp_path / "none.tsv")
    assert str(raised.value) == f"there is no file {tmp_path}/none.tsv; it should name pairs as {FORM}"


def test_a_file_that_is_not_utf_8_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_bytes(b"query_id\tdoc_id\na\t\xff\n")
    with pytest.raises(TrainingError) as raised:
        read_judgments(path)
    assert str(raised.value) == (
        f"{path} cannot be read as judgments ('utf-8' codec can't decode byte 0xff in position 18: invalid start "
        f"byte); write it in UTF-8 as {FORM}"
    )


def test_splits_are_read(tmp_path: Path) -> None:
    (tmp_path / "splits.json").write_text('{"train": ["a", "b"], "valid": []}')
    assert read_splits(tmp_path / "splits.json") == {"train": ["a", "b"], "valid": []}


@pytest.mark.parametrize("content", ["[]", '{"train": "a"}', '{"train": [1, 2]}', '{"train": {"a": 1}}'])
def test_splits_of_another_form_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "splits.json").write_text(content)
    with pytest.raises(TrainingError) as raised:
        read_splits(tmp_path / "splits.json")
    assert str(raised.value) == (
        f'{tmp_path}/splits.json must be an object of lists of query ids, as {{"train": ["a"], "valid": ["b"]}}'
    )


def test_splits_that_are_missing_or_not_json_raise_an_error(tmp_path: Path) -> None:
    path = tmp_path / "splits.json"
    with pytest.raises(TrainingError) as raised:
        read_splits(path)
    assert str(raised.value) == f"there is no file {path}; it should name the query ids of each split"
    path.write_text("{")
    with pytest.raises(TrainingError) as raised:
        read_splits(path)
    assert str(raised.value) == (
        f"{path} is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    )
