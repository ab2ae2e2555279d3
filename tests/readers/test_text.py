"""Plain text: sections, pages, and titles."""

from __future__ import annotations

import pytest

from engine.errors import DocumentError
from engine.readers.text import read

BODY = "A sentence of the body that is long enough to fill its line. " * 5


def test_sections_follow_headings() -> None:
    document = read(f"My Paper\n\n1. Introduction\n\n{BODY}\n\n2. Methods\n\n{BODY}\n".encode(), "a.txt", "dir/a.txt")
    assert document.title == "My Paper"
    assert [section.heading for section in document.sections] == ["1. Introduction", "2. Methods"]
    assert document.text.startswith("My Paper\n\n1. Introduction")


def test_text_without_headings_is_one_section() -> None:
    document = read(b"just some words.\n", "a.txt", "dir/a.txt")
    assert [(section.heading, section.path) for section in document.sections] == [("", ())]
    assert document.title == "a"


def test_form_feeds_are_pages() -> None:
    document = read(b"one\n\ftwo\n\fthree\n", "a.txt", "a.txt")
    assert document.pages == (0, 5, 10)
    assert [document.text[start] for start in document.pages] == ["o", "t", "t"]


def test_the_title_of_an_rfc_stands_below_its_columns() -> None:
    head = "Network Working Group         R. Fielding\nRequest for Comments: 1      UC Irvine\n\n\n"
    assert (
        read(f"{head}       Hypertext Transfer\n\nBody of it.\n".encode(), "a", "a.txt").title == "Hypertext Transfer"
    )


@pytest.mark.parametrize("data", [b"", b" \n\f\n", b"\xef\xbb\xbf"])
def test_empty_text_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError, match="no text"):
        read(data, "a.txt", "a.txt")
