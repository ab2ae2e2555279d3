from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks.formats.trec import (
    FormatError,
    columns,
    read_lines,
    read_qrels,
    read_run,
    whole_number,
    write_qrels,
    write_run,
)


def test_a_run_has_six_columns(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "pets.trec"
    write_run({"cat": [("kitten", 0.8), ("dog", 1 / 3)], "dog": []}, path, "document")
    assert path.read_text() == "cat Q0 kitten 1 0.800000012 document\ncat Q0 dog 2 0.333333343 document\n"


def test_a_run_is_read_in_the_order_that_was_written(tmp_path: Path) -> None:
    # trec_eval ranks ties by name, z and then b; as float32, c would tie with those above it.
    ranking = [("a", 0.5), ("z", 0.5), ("b", 0.5), ("c", 0.5 - 1e-12), ("zero", 0.0), ("y", -1.0)]
    write_run({"q": ranking}, tmp_path / "run", "tag")
    (read,) = read_run(tmp_path / "run").values()
    assert [target for target, _ in read] == [target for target, _ in ranking]
    assert [score for _, score in read] == pytest.approx([score for _, score in ranking], abs=1e-6)


def test_a_run_of_another_tool_is_ordered_by_score_and_then_by_name_in_reverse(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 a 1 0.5 t\nq Q0 b 2 0.5 t\nq Q0 c 3 2e0 t\nr Q0 a 1 -1 t\n")
    assert read_run(tmp_path / "run") == {"q": [("c", 2.0), ("b", 0.5), ("a", 0.5)], "r": [("a", -1.0)]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q Q0 a 2 0.5", "has 5 columns, not 6; it must be query, Q0, target, rank, score, tag by white space"),
        ("q Q0 b 2 high t", "has the score 'high'; it must be a number"),
        ("q Q0 b 2 nan t", "has the score 'nan', which has no place in an order"),
        ("q Q0 a 2 0.4 t", "ranks 'a' for query 'q' again"),
    ],
)
def test_the_error_for_a_damaged_run_names_its_line(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "run").write_text(f"q Q0 a 1 0.5 t\n{line}\n")
    with pytest.raises(FormatError, match=f"run:2 {said}"):
        read_run(tmp_path / "run")


def test_judgments_are_read_as_they_were_written(tmp_path: Path) -> None:
    qrels = {"q": {"a#0": 2, "b": 0}, "p": {"a": -1}}
    write_qrels(qrels, tmp_path / "qrels")
    assert (tmp_path / "qrels").read_text() == "q 0 a#0 2\nq 0 b 0\np 0 a -1\n"
    assert read_qrels(tmp_path / "qrels") == qrels
    (tmp_path / "qrels").write_text("q 0 a 1\nq\t0  a\t2\n")
    with pytest.raises(FormatError, match="qrels:2 judges 'a' for query 'q' again"):
        read_qrels(tmp_path / "qrels")


def test_an_id_that_columns_cannot_hold_is_refused(tmp_path: Path) -> None:
    for bad in ("a b", "", "a\n"):
        with pytest.raises(FormatError, match="is empty or holds white space"):
            write_qrels({"q": {bad: 1}}, tmp_path / "qrels")
        with pytest.raises(FormatError, match="is empty or holds white space"):
            write_run({"q": [(bad, 1.0)]}, tmp_path / "run", "tag")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["plain.txt", "packed.txt.gz"])
def test_lines_end_at_line_ends_only_and_know_their_numbers(tmp_path: Path, name: str) -> None:
    text = "\ufefföne\r\n\n  \ntwo\u2028still two\x0b\nlast".encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    found = [("öne", 1), ("two\u2028still two\x0b", 4), ("last", 5)]
    assert list(read_lines(path)) == [(f"{path}:{number}", line) for line, number in found]


def test_the_error_for_an_unreadable_file_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\nb\xffd\n")
    with pytest.raises(FormatError, match=r"a.txt:2 is not UTF-8 \(byte 1\)"):
        list(read_lines(path))
    with pytest.raises(FormatError, match=r"b.txt cannot be read \(No such file or directory\)"):
        list(read_lines(tmp_path / "b.txt"))
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"whole")[:-9])
    with pytest.raises(FormatError, match=r"c.gz is not a whole gzip file"):
        list(read_lines(tmp_path / "c.gz"))


def test_columns_must_be_as_many_as_their_names() -> None:
    assert columns("f:1", "a\tb c", ("x", "y")) == ["a", "b c"]
    assert columns("f:1", " a  b ", ("x", "y"), None) == ["a", "b"]
    with pytest.raises(FormatError, match="f:1 has 1 columns, not 2; it must be x, y by tabs"):
        columns("f:1", "a b", ("x", "y"))
    with pytest.raises(FormatError, match=r"f:1 has the score '1\.5'; it must be a whole number"):
        whole_number("f:1", "score", "1.5")
