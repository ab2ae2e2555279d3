"""Documents, and texts from outside."""

import json
import unicodedata
from typing import Any
from xml.etree import ElementTree

import pytest

from engine.errors import DocumentError
from engine.readers import read_bytes
from engine.text.cleaning import json_text, safe
from engine.text.document import Document, assemble, text_id, text_title
from engine.text.segmentation import Section, Span


@pytest.mark.parametrize(
    ("text", "suffix", "title"),
    [
        ("---\ntitle: On foxes\nyear: 2019\n---\n\n# Hunt\n\nFoxes run.\n\n## Den\n\nOld.", "md", "On foxes"),
        ("Foxes run in the reser-\nvoir.\f\nDogs.", "txt", "Foxes run in the reservoir."),
        ("Introduction\n\nOn foxes\n\nFoxes run at night.", "txt", "On foxes"),
    ],
)
def test_a_text_is_read_as_a_file_of_it(text: str, suffix: str, title: str) -> None:
    made = Document.from_text(text)
    (read,) = read_bytes(text.encode(), f"a.{suffix}")
    assert isinstance(read, Document)
    assert (made.text, made.sections, made.pages) == (read.text, read.sections, read.pages)
    assert (made.metadata, made.title) == (read.metadata, title)


def test_a_document_of_a_text_has_what_is_given_and_a_name_of_its_content() -> None:
    made = Document.from_text("Words.", title="On  words", metadata={"year": 2020}, doc_id="a")
    assert (made.doc_id, made.title, made.text) == ("a", "On words", "Words.")
    assert (made.metadata, made.source) == ({"year": 2020}, "")
    assert Document.from_text("Words.").doc_id == Document.from_text("Words.", metadata={"a": 1}).doc_id
    assert Document.from_text("Words.").doc_id == text_id("", "Words.") == "text-023163a7b544ce85"
    assert len({Document.from_text(text, title=title).doc_id for text in "ab" for title in ("", "t")}) == 4
    assert Document.from_text("one\r\ntwo\0\ud800").text == "one\ntwo\ufffd\ufffd"
    assert Document.from_text("Words.").page_numbers(Span(0, 3)) == ()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Short.", "Short."), ("\n\n  First line\nsecond line", "First line"), ("word " * 30, "word " * 11 + "word…"),
        ("x" * 100, "x" * 59 + "…"), ("x" * 60, "x" * 60), ("", ""),
    ],
)  # fmt: skip
def test_a_title_is_the_beginning_of_the_text(text: str, title: str) -> None:
    assert text_title(text) == title
    assert len(title) <= 61


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": ""}, "it holds no text"),
        ({"text": " \n"}, "it holds no text"),
        ({"text": 5}, "text is int, not str; convert it: str(text)"),
        ({"text": "x", "title": None}, "title is NoneType, not str; convert it: str(title)"),
        ({"text": "x", "doc_id": 5}, "doc_id is int, not str; convert it: str(doc_id)"),
        ({"text": "x" * 40_000_000}, "the text is 40,000,000 bytes, the limit is 33,554,432; split it"),
    ],
)
def test_empty_too_long_and_non_text_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DocumentError) as raised:
        Document.from_text(**arguments)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("span", "numbers"),
    [
        (Span(0, 10), (1,)), (Span(9, 11), (1, 3)), (Span(10, 11), (3,)), (Span(19, 20), (3,)),
        (Span(0, 30), (1, 3, 4)), (Span(25, 25), (4,)),
    ],
)  # fmt: skip
def test_pages_are_counted_from_one(span: Span, numbers: tuple[int, ...]) -> None:
    document = Document("a", "A", "x" * 30, (), pages=(0, 10, 10, 20))  # the second page is empty
    assert document.page_numbers(span) == tuple(range(numbers[0], numbers[-1] + 1))


OPINION = (
    "Opinion\n\n¶ 12 The court holds that Compl. ¶ 99 fails. [*4] It is so ordered.\n\n{¶13} The rest. [*5] End.\n"
)


@pytest.mark.parametrize(
    ("first", "last", "pin"),
    [
        ("Opinion", "Opinion", ""), ("holds", "holds", "¶ 12"), ("ordered", "ordered", "¶ 12, *4"),
        ("holds", "rest", "¶ 12–¶13, *4"), ("End", "End", "¶13, *5"),
    ],
)  # fmt: skip
def test_the_paragraph_and_the_star_page_of_a_span_are_its_pin(first: str, last: str, pin: str) -> None:
    document = assemble(OPINION, (), doc_id="opinion", source="")
    assert document.pin(Span(document.text.index(first), document.text.index(last) + len(last))) == pin


def test_paragraph_numbers_outside_of_the_text_end_with_their_paragraph_and_section() -> None:
    sections = (Section("A", ("A",), 0, 30), Section("B", ("B",), 30, 60))
    document = Document("d", "d", "x" * 60, sections, pins=((0, "[0001]"), (10, "[0002]"), (20, "")))
    spans = {(2, 5): "[0001]", (5, 15): "[0001]–[0002]", (22, 25): "", (30, 40): "", (0, 60): "[0001]–[0002]"}
    assert {span: document.pin(Span(*span)) for span in spans} == spans


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


@pytest.mark.parametrize(
    ("title", "expected"),
    [("", ""), ("The old mill", "The old mill"), ("essay", ""), ("The river runs over …", "The river runs over …")],
)
def test_a_title_of_its_own_is_no_name_and_not_the_first_words_of_the_text(title: str, expected: str) -> None:
    document = Document.from_text(
        "The river runs over the old river and jumps through the dark light.", title=title, doc_id="essay"
    )
    assert document.title and document.own_title == expected
