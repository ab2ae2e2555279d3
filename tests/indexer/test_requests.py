"""Batches of requests, and requests and results as bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from engine.readers import Unreadable
from engine.text.document import Document
from engine.text.segmentation import Section
from indexer.reading.reader import ReadRequest, batches, pack, unpack


def _requests(folder: Path, sizes: dict[str, int]) -> list[ReadRequest]:
    for name, size in sizes.items():
        (folder / name).write_bytes(b"x" * size)
    return [ReadRequest(str(folder / name), name) for name in sizes]


def _names(folder: Path, sizes: dict[str, int]) -> list[list[str | None]]:
    return [[request.doc_id for request in batch] for batch in batches(_requests(folder, sizes))]


def test_a_batch_ends_at_a_number_of_files_or_bytes_and_draws_one_request_ahead(tmp_path: Path) -> None:
    found = _names(tmp_path, {f"{at}.txt": 10 for at in range(70)})
    assert [len(batch) for batch in found] == [32, 32, 6]
    assert [name for batch in found for name in batch] == [f"{at}.txt" for at in range(70)]
    half = 2**18
    sizes = {"a.txt": half, "b.txt": half, "c.txt": 1, "d.pdf": 2**20, "e.txt": 1, "f.txt": half}
    assert _names(tmp_path, sizes) == [["a.txt", "b.txt"], ["c.txt"], ["d.pdf"], ["e.txt", "f.txt"]]
    requests = iter(_requests(tmp_path, {f"{at}.txt": 10 for at in range(70)}))
    next(batches(requests))
    assert next(requests).doc_id == "33.txt"


def test_files_of_many_documents_single_lines_and_missing_files_are_sent_alone(tmp_path: Path) -> None:
    [first, lines, last] = _requests(tmp_path, {"a.txt": 1, "b.jsonl.gz": 1, "c.txt": 1})
    line, missing = ReadRequest("stdin:1", line=b"{}"), ReadRequest(str(tmp_path / "no.txt"))
    found = list(batches([first, last, lines, line, first, missing, last, first]))
    assert found == [[first, last], [lines], [line], [first], [missing], [last, first]]


def _document(text: str) -> Document:
    section = Section("Öl", ("A", "Öl"), 0, len(text))
    return Document("d", "title\n!", text, (section,), {"year": 2020, "tags": ["a", None]}, "d.txt", (0, 3))


@pytest.mark.parametrize("text", ["", "one\ntwo\r\n\n", "!", "naïve 😀 漢字", "half \ud83d and \ude00", "\0\x1f\u2028"])
def test_results_come_back_as_they_were(text: str) -> None:
    failed = Unreadable("e.txt", "damaged", "e")
    results: list[Document | Unreadable | int] = [_document(text), 7, failed, _document(text + "!")]
    assert unpack(pack(results)) == results


def test_a_document_without_plain_values_fails_alone() -> None:
    bad = Document("bad", "t", "text", (), {"year": cast(Any, {1, 2})}, "bad.txt")
    worse = Document("worse", "t", cast(Any, None), (), {}, "worse.txt")
    good = _document("sound")
    found = unpack(pack([bad, good, worse]))
    assert found[1] == good
    assert [(one.doc_id, one.reason[:30]) for one in (found[0], found[2]) if isinstance(one, Unreadable)] == [
        ("bad", "the parser gave no document (O"),
        ("worse", "the parser gave no document (i"),
    ]


@pytest.mark.parametrize(
    "message", [b"", b"[", b"\xff\xff", b"no JSON\n", b"[[1]]\n", b'{"a": 1}\n', b'[{"reason": 1}]\n', b"7\n"]
)
def test_other_bytes_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError):
        unpack(message)
