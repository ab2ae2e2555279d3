"""The encoding of text files is detected, and characters that cannot be stored are replaced."""

from __future__ import annotations

import pytest

from engine.errors import DocumentError
from engine.readers.encoding import decode
from engine.text.cleaning import clean

RUSSIAN = "Длинные документы ищут длинные документы, и программа показывает, почему они похожи. " * 5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"])
def test_western_text_is_read_in_every_usual_encoding(encoding: str) -> None:
    text = "The café is naïve … “quoted”. " * 4
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["cp1251", "koi8_r"])
def test_cyrillic_is_guessed(encoding: str) -> None:
    assert decode(RUSSIAN.encode(encoding)) == RUSSIAN


def test_valid_utf8_is_read_as_utf8_whatever_is_declared() -> None:
    assert decode("über".encode(), declared="cp1252") == "über"


def test_a_declared_encoding_is_used_where_utf8_does_not_fit() -> None:
    assert decode("Łódź".encode("iso8859-2"), declared="iso8859-2") == "Łódź"


def test_a_damaged_byte_does_not_change_the_encoding() -> None:
    assert decode(RUSSIAN.encode() + b"\xff.") == RUSSIAN + "\ufffd."


def test_stray_bytes_in_ascii_text_are_replaced() -> None:
    assert decode(b"plain text " * 100 + b"\x81\x8d.") == "plain text " * 100 + "\ufffd\ufffd."


def test_an_unknown_declared_encoding_is_passed_over() -> None:
    assert decode(b"plain", declared="x-none") == "plain"


def test_newlines_become_one_kind() -> None:
    assert decode(b"a\r\nb\rc\nd") == "a\nb\nc\nd"


def test_nul_and_lone_surrogates_are_replaced_in_place() -> None:
    assert clean("a\x00b\ud800c") == "a\ufffdb\ufffdc"


def test_binary_data_is_refused() -> None:
    with pytest.raises(DocumentError, match="binary data, not text"):
        decode(bytes(range(256)) * 10)


def test_a_wrong_byte_order_mark_is_refused() -> None:
    with pytest.raises(DocumentError, match="mark of utf-8 but is not utf-8"):
        decode(b"\xef\xbb\xbfcaf\xe9")
