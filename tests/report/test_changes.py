"""What changed between two versions: the changes turn the words of one into those of the other, in all scripts."""

from __future__ import annotations

import re

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.comparison import compare_alone
from engine.report.changes import Changes, changes_html, changes_lines, changes_of
from engine.report.lines import Style, columns, plain
from engine.text.document import Document
from tests.fakes import FakeEncoder, make_document

SCOPE = "The Seller shall indemnify the Buyer without limit for all losses that arise from the goods. " * 3
PRICE = "The price is 10 euros for each pump and 20 euros for each valve. " * 3
LAW = "Courts of the land of the Seller decide every dispute about these goods and valves. " * 3


def changes(old: Document, new: Document) -> Changes:
    return changes_of(compare_alone(old, new, FakeEncoder()))


def texts(found: Changes) -> list[tuple[str, str]]:
    return [
        (
            found.query.text[one.query.start : one.query.stop],
            found.target.text[one.target.start : one.target.stop],
        )
        for one in found.changes
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("The price is 10 euros and 20 cents.", "The price is 12 euros and 30 cents.", [("10", "12"), ("20", "30")]),
        ("Without limit for all losses.", "Without limit for losses.", [("all", "")]),
        ("One\n\nTwo or three.", "One\n\nNew.\n\nTwo or three.", [("", "New.")]),
        ("水泵管理人员应当定期检查", "水泵管理人员必须定期检查", [("应当", "必须")]),
        ("ポンプは毎日点検する", "ポンプは毎月点検する", [("日", "月")]),
        ("The same\ntext.", "The  same text.", []),
        (
            "Shall make good all harm and damage of it.",
            "Shall use fair efforts of it.",
            [("make good all harm and damage", "use fair efforts")],
        ),
    ],
    ids=["numbers", "deletion", "paragraph", "chinese", "japanese", "white space", "phrase"],
)
def test_changes_are_words(old: str, new: str, expected: list[tuple[str, str]]) -> None:
    assert texts(changes(Document.from_text(old), Document.from_text(new))) == expected


WORDS = st.lists(st.sampled_from(["old", "new", "fox", "river", "and", "\n\n", "."]), min_size=1, max_size=30)


@given(WORDS, WORDS)
def test_the_changes_turn_one_text_into_the_other(old: list[str], new: list[str]) -> None:
    found = changes(*(make_document(name, f"fox {' '.join(words)} end") for name, words in (("a", old), ("b", new))))
    made, last = "", 0
    for (_, inserted), change in zip(texts(found), found.changes, strict=True):
        made += f"{found.query.text[last : change.query.start]} {inserted} "
        last = change.query.stop
    made += found.query.text[last:]
    assert made.split() == found.target.text.split() or re.findall(r"\w+|[.]", made) == re.findall(
        r"\w+|[.]", found.target.text
    )


def test_a_section_that_moved_is_compared_with_itself() -> None:
    old = make_document("a", [("Scope", SCOPE), ("Price", PRICE), ("Law", LAW)])
    new = make_document("b", [("Law", LAW.replace("decide", "hear")), ("Scope", SCOPE), ("Price", PRICE)])
    found = changes(old, new)
    assert found.n_moved == 1 and texts(found) == [("decide", "hear")] * 3
    assert found.summary == "1 of 3 sections changed, 1 moved; words: 3 deleted, 3 inserted"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_shows_each_change_with_signs_and_styles(width: int) -> None:
    old = make_document("a", [("Scope", SCOPE), ("Price", PRICE)])
    new = make_document("b", [("Scope", SCOPE), ("Price", PRICE.replace("20", "30", 1) + "管" * 200)])
    lines = changes_lines(changes(old, new), width=width)
    assert "and [-20-]{+30+} euros" in " ".join(plain(lines).split()) and "indemnify" not in plain(lines)
    assert max(map(columns, lines)) <= width
    styles = {run.style: run.text for one in lines for run in one}
    assert {Style.DELETED, Style.INSERTED} <= styles.keys()


@pytest.mark.parametrize(
    ("deleted", "shown"),
    [
        ("## Head\n\nThe **only** court is here.", "[-Head The only court is here.-]"),
        ("| Name | Sum |\n| :--- | ---: |\n| rent | 20 |", "[-Name | Sum rent | 20-]"),
        ("####", "[-####-]"),
        ("a ** b || c # d", "[-a ** b || c # d-]"),
    ],
)
def test_changes_are_shown_without_signs_of_markdown(deleted: str, shown: str) -> None:
    old, new = (make_document(name, f"{PRICE}\n\n{body}{LAW}") for name, body in (("a", f"{deleted}\n\n"), ("b", "")))
    assert shown in " ".join(plain(changes_lines(changes(old, new), width=200)).split())


def test_the_page_has_deletions_and_insertions() -> None:
    old, new = (
        make_document(name, [("Price", PRICE + last)]) for name, last in (("a", "It <b>ends</b>."), ("b", "It stops."))
    )
    page = lxml.html.document_fromstring(changes_html(changes(old, new), command="x"))
    assert page.xpath("//section//del/text()") == ["<b>ends</b>"] and page.xpath("//section//ins/text()") == ["stops"]
    assert "No word has changed" in changes_html(changes(old, old))
