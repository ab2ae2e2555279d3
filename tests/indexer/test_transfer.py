"""Results are unpacked from a message as they were packed."""

from __future__ import annotations

from typing import Any, cast

import pytest

from engine.readers import Unreadable
from engine.text.document import Document
from engine.text.spans import Section
from indexer.reading.transfer import ends_answer, pack, unpack


def _document(text: str) -> Document:
    section = Section("Öl", ("A", "Öl"), 0, len(text))
    return Document("d", "title\n!", text, (section,), {"year": 2020, "tags": ["a", None]}, "d.txt", (0, 3))


@pytest.mark.parametrize("text", ["", "one\ntwo\r\n\n", "!", "naïve 😀 漢字", "half \ud83d and \ude00", "\0\x1f\u2028"])
@pytest.mark.parametrize("is_last", [False, True])
def test_results_come_back_as_they_were(text: str, is_last: bool) -> None:
    failed = Unreadable("e.txt", "damaged", "e")
    results: list[Document | Unreadable | int] = [_document(text), 7, failed, _document(text + "!")]
    message = pack(results, is_last=is_last)
    assert unpack(message) == results
    assert ends_answer(message) is is_last


def test_a_document_without_plain_values_fails_alone() -> None:
    bad = Document("bad", "t", "text", (), {"year": cast(Any, {1, 2})}, "bad.txt")
    worse = Document("worse", "t", cast(Any, None), (), {}, "worse.txt")
    good = _document("sound")
    found = unpack(pack([bad, good, worse]))
    assert found[1] == good
    assert [(one.doc_id, one.reason[:30]) for one in (found[0], found[2]) if isinstance(one, Unreadable)] == [
        ("bad", "the parser gave no document (O"),
        ("worse", "the parser gave no document ('"),
    ]


@pytest.mark.parametrize(
    "message", [b"", b"[", b"\xff\xff", b"no JSON\n", b"[[1]]\n", b'{"a": 1}\n', b'[{"reason": 1}]\n', b"7\n"]
)
def test_other_bytes_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError):
        unpack(message)
