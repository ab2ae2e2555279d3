from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks.formats.beir import is_beir, open_beir, read_qrels, read_texts
from benchmarks.formats.trec import FormatError

HEADER = "query-id\tcorpus-id\tscore\n"


def test_a_folder_is_known_by_its_judgments(beir_folder: Path, folder: Path) -> None:
    assert (is_beir(beir_folder), is_beir(folder)) == (True, False)
    assert [path.name for path in open_beir(beir_folder)] == ["corpus.jsonl", "queries.jsonl"]


def test_title_and_text_are_read_and_documents_without_either_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.gz"
    lines = ['{"_id": "a", "title": "Cats", "text": "They purr."}', '{"_id": "b", "title": "", "text": " "}']
    path.write_bytes(gzip.compress("\n".join([*lines, '{"_id": "c", "text": "Dogs."}']).encode()))
    assert [(document.doc_id, document.text) for document in read_texts(path)] == [
        ("a", "Cats\n\nThey purr."),
        ("c", "Dogs."),
    ]


def test_a_line_that_cannot_be_read_stops_the_reading(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n{"text": "no id"}\n')
    with pytest.raises(FormatError, match=r"corpus.jsonl:2: the record has no id"):
        list(read_texts(tmp_path / "corpus.jsonl"))


def test_judgments_are_read_below_their_header(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(HEADER + "q1\td1\t2\nq1\td2\t0\nq0\td1\t1\nq0\td1\t1\n")
    assert read_qrels(tmp_path / "test.tsv") == {"q1": {"d1": 2, "d2": 0}, "q0": {"d1": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1\td1\t1\n", "test.tsv:1 is a judgment; the first line must be the header query-id, corpus-id, score"),
        (HEADER + "q1\td1\n", "test.tsv:2 has 2 columns, not 3"),
        (HEADER + "q1\td1\thigh\n", "test.tsv:2 has the score 'high'; it must be a whole number"),
        (HEADER + "q1\td1\t1\nq1\td1\t2\n", "test.tsv:3 judges 'd1' for query 'q1' as 2, an earlier line as 1"),
    ],
)
def test_the_error_for_a_damaged_judgment_names_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "test.tsv").write_text(text)
    with pytest.raises(FormatError, match=said):
        read_qrels(tmp_path / "test.tsv")


def test_a_folder_without_queries_or_judgments_is_refused(beir_folder: Path) -> None:
    (beir_folder / "queries.jsonl").unlink()
    with pytest.raises(FormatError, match=r"holds neither queries.jsonl nor queries.jsonl.gz"):
        open_beir(beir_folder)
    for path in (beir_folder / "qrels").iterdir():
        path.unlink()
    with pytest.raises(FormatError, match=r"qrels holds no SPLIT.tsv"):
        open_beir(beir_folder)
