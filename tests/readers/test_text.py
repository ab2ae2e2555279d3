"""Plain text: sections, pages, and titles."""

from __future__ import annotations

import json
from itertools import count

import pytest

from engine.errors import DocumentError
from engine.readers.jsonl import read_one
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


def head(line: str, number: int) -> str:
    return f"         {line}           {number}\n\n"


@pytest.mark.parametrize(
    ("pages", "n_heads"),
    [
        ([BODY, head("Cite as: 5 W. 12 (2001)", 2) + BODY, head("Cite as: 5 W. 12 (2001)", 3) + BODY], 2),
        ([head("Cite as: 5 W. 12 (2001)", 1) + BODY, head("Cite as: 5 W. 12 (2001)", 2) + BODY], 2),
        ([head("VANE", 1) + BODY, head("5 W. 12", 2) + BODY, head("VANE v. LOCK", 3) + BODY], 3),
        ([BODY + "\n\nOkabe       Standards       [Page 1]\n", BODY + "\n\nOkabe       Standards       [Page 2]\n"], 2),
        ([BODY, f"RIVER BOARD REPORT 2\n\n{BODY}", f"RIVER BOARD REPORT 3\n\n{BODY}"], 2),
        ([f"A. Yes.\n\n{BODY}"] * 3, 0),
        ([f"Id. at 12.\n\n{BODY}", f"Id. at 13.\n\n{BODY}", f"Id. at 14.\n\n{BODY}"], 0),
        ([f"Chapter 1\n\n{BODY}", f"Chapter 2\n\n{BODY}"], 0),
        ([f"Total       12\n{BODY}", f"Total       13\n{BODY}"], 0),
        ([head("Cite as: 5 W. 12 (2001)", 2) + BODY, head("Cite as: 5 W. 12 (2001)", 9) + BODY], 0),
        ([head("5 W. 12", page) + f"        A. Yes.\n\n{BODY}" for page in (1, 2)], 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_json", [False, True])
def test_heads_of_few_pages_are_left_out_by_their_numbers(pages: list[str], n_heads: int, as_json: bool) -> None:
    text = "\f".join(pages)
    data = json.dumps({"id": "a", "text": text}) if as_json else text
    document = (read_one if as_json else read)(data.encode(), "a", "a")
    assert document.left_out.get("running_heads", 0) == n_heads
    n_lines = sum(bool(line.strip()) for line in text.replace("\f", "\n").split("\n"))
    assert sum(bool(line.strip()) for line in document.text.replace("\f", "\n").split("\n")) == n_lines - n_heads


def opinion(n_pages: int) -> str:
    """An opinion of pages with running heads, whose numbers restart in each part, and words cut by hyphens."""
    first = (
        "(Slip Opinion)           OCTOBER TERM, 2001             1\n\n                        Syllabus\n\n"
        "     NOTE: The syllabus is no part of the opinion of the Court. See\n"
        "   United States v. Lumber Co., 200 U. S. 321.\n\nSUPREME COURT OF THE UNITED STATES\n\n"
        "                        Syllabus\n\n   VANE ET AL. v. LOCK COMPANY\n\n   No. 12-34. Decided June 24, 2001\n\n"
    )
    lines = "The keeper of the lock asks for return of the toll, and appur-\ntenant rights of the weir go too.\n"
    parts = ["Syllabus"] * 2 + ["Opinion of the Court"] * (n_pages - 3) + ["VANE, J., dissenting"]
    pages = [first + lines]
    numbers = count(2)
    for place, part in enumerate(parts[1:], 1):
        numbers = numbers if part == parts[place - 1] else count(1)
        number = next(numbers)
        line = (
            f"{number}           VANE v. LOCK COMPANY"
            if number % 2 == 0
            else head("Cite as: 5 U. S. 12 (2001)", number)
        )
        section = "                              I\n                              A\n" if number == 1 else ""
        body = f"{lines}{section}{lines * 9}So holds {chr(97 + place % 26) * 3}.\n"
        pages.append(f"{line.rstrip()}\n\n                   {part}\n\n{body}")
    return "\f".join(pages)


@pytest.mark.parametrize("n_pages", [4, 7, 40])
def test_an_opinion_of_pages_is_read_with_its_parts(n_pages: int) -> None:
    document = read(opinion(n_pages).encode(), "a.txt", "a.txt")
    assert document.title == "VANE v. LOCK COMPANY"
    assert document.metadata["court"] == "SUPREME COURT OF THE UNITED STATES"
    assert "Cite as" not in document.text
    assert "appur-" not in document.text
    assert document.text.count("Opinion of the Court") == document.text.count("VANE, J., dissenting") == 1
    paths = list(dict.fromkeys(section.path[0] for section in document.sections if section.path))
    assert paths == ["Syllabus", "Opinion of the Court", "VANE, J., dissenting"]
    assert len(document.pages) == n_pages
    twin = read_one(json.dumps({"id": "a", "text": opinion(n_pages)}).encode(), "a", "a")
    assert (twin.title, [section.path for section in twin.sections]) == (
        document.title, [section.path for section in document.sections],
    )  # fmt: skip


def test_numbers_of_items_in_italics_are_not_pages() -> None:
    text = "*1. Keep the gate.* It is old.\n\n*2. Lift the gate.* It is new.\n"
    assert read(text.encode(), "a.txt", "a.txt").text == text
