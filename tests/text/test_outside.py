"""Text from outside cannot move the cursor, forge a line, or break a file."""

from __future__ import annotations

import json
import unicodedata
from xml.etree import ElementTree

import pytest

from engine.text.cleaning import json_text, safe

EVERY_CHARACTER = "".join(map(chr, range(0x11000)))


@pytest.mark.parametrize(
    ("text", "line", "lines"),
    [
        ("plain", "plain", "plain"),
        ("a\nError: b", "a Error: b", "a\nError: b"),
        ("a\r\nb\rc\x85d\u2028e", "a b c d e", "a\nb\nc\nd\ne"),
        ("\x1b[31mred\x9b0m\x07", "\ufffd[31mred\ufffd0m\ufffd", "\ufffd[31mred\ufffd0m\ufffd"),
        ("tab\there", "tab here", "tab\there"),
        ("exe\u202efdp", "exe\ufffdfdp", "exe\ufffdfdp"),
        ("\ud800 \ufffe \uffff", "\ufffd \ufffd \ufffd", "\ufffd \ufffd \ufffd"),
        (
            "\u200fשלום, नमस्ते क्\u200dष, 👩\u200d👧",
            "\u200fשלום, नमस्ते क्\u200dष, 👩\u200d👧",
            "\u200fשלום, नमस्ते क्\u200dष, 👩\u200d👧",
        ),
    ],
)
def test_what_a_terminal_would_obey_is_replaced(text: str, line: str, lines: str) -> None:
    assert (safe(text), safe(text, lines=True)) == (line, lines)


def test_no_control_character_is_left_of_any_text() -> None:
    kept = {character for character in safe(EVERY_CHARACTER) if unicodedata.category(character) in ("Cc", "Cs")}
    assert kept == set()
    with_lines = safe(EVERY_CHARACTER, lines=True)
    assert {character for character in with_lines if unicodedata.category(character) in ("Cc", "Cs")} == {"\n", "\t"}
    assert ElementTree.fromstring(f"<a>{with_lines.replace('&', '').replace('<', '')}</a>").text


def test_json_is_read_back_without_loss_and_has_no_control_characters() -> None:
    text = " ".join(EVERY_CHARACTER)  # neighbouring surrogates would be read back as one character
    written = json_text({"text": text})
    assert json.loads(written)["text"] == text
    assert {character for character in written if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")} == set()
