"""Differences of two texts, and of two results."""

import copy
import re
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.comparison import compare_alone
from engine.index import Index
from engine.replay import Cause, compare_results, differences_text
from engine.report.changes import Changes, changes_html, changes_lines, changes_of
from engine.report.lines import Style, columns, plain
from engine.search.request import Request
from engine.text.document import Document
from tests.fakes import FakeEncoder, make_document

SCOPE = "The Seller shall indemnify the Buyer without limit for all losses that arise from the goods. " * 3
PRICE = "The price is 10 euros for each pump and 20 euros for each valve. " * 3
LAW = "Courts of the land of the Seller decide every dispute about these goods and valves. " * 3


def changes(old: Document, new: Document) -> Changes:
    return changes_of(compare_alone(old, new, FakeEncoder()))


def texts(found: Changes) -> list[tuple[str, str]]:
    return [
        (found.query.text[one.query.start : one.query.stop], found.target.text[one.target.start : one.target.stop])
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
        ("To make good all harm of it.", "To use fair efforts of it.", [("make good all harm", "use fair efforts")]),
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


def test_text_that_fills_several_sections_is_a_change_of_each() -> None:
    old, new = make_document("a", SCOPE), make_document("b", [("Price", PRICE), ("Law", LAW), ("Term", "One year.")])
    found = changes(old, new)
    assert found.summary.startswith("3 of 3 sections changed; ")
    assert [number for number, _ in found.by_section()] == [0, 1, 2] and texts(found)[-1] == ("", "Term\nOne year.")
    new = make_document("b", [("Scope", SCOPE), ("Price", PRICE)])
    old = make_document("a", [("Scope", SCOPE), ("Law", LAW), ("Term", "One year."), ("Price", PRICE)])
    found = changes(old, new)
    assert found.summary.startswith("1 of 2 sections changed, 2 deleted; ")
    assert texts(found) == [(f"Law\n{LAW.strip()}", ""), ("Term\nOne year.", "")]
    assert "valves.-] [-Term One year.-]" in " ".join(plain(changes_lines(found, width=80)).split())
    old = make_document("a", [("Scope", f"{SCOPE}\n\n{LAW}"), ("Term", "One year."), ("Price", PRICE)])
    assert [number for number, _ in changes(old, new).by_section()] == [0, 1]


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
    assert "No word has changed" in changes_html(changes(old, old)) and page.xpath("name(//section/*)") == "h2"


@pytest.fixture
def values(index: Index, corpus: list[Document]) -> dict[str, Any]:
    return index.search(corpus[3], Request(k=3)).to_dict()


def test_a_result_equals_itself_listed_in_full_or_not(index: Index, corpus: list[Document]) -> None:
    result = index.search(corpus[3], Request(k=3))
    for n_pairs in (0, 1, None):
        found = compare_results(result.to_dict(n_pairs=n_pairs), result.to_dict(n_pairs=None))
        assert found.is_equal and found.reasons == ()
    assert differences_text(found) == f"equal: {corpus[3].title}: 3 hits with the same ranks, scores and parts"


def test_the_section_pair_that_changed_is_the_cause(values: dict[str, Any]) -> None:
    other = copy.deepcopy(values)
    part = other["hits"][1]["parts"][0]
    before = part["contribution"]
    part["contribution"] += 0.01
    other["hits"][1]["score"] += 0.01
    (change,) = compare_results(values, other).changes
    names = [part[f"{side}_section"]["heading"] for side in ("query", "target")]
    assert (change.doc_id, change.rank_before, change.rank_after) == (other["hits"][1]["id"], 2, 2)
    assert change.causes == (Cause(names[0], names[1], before, pytest.approx(before + 0.01)),)


def test_pairs_that_were_not_listed_are_compared_as_a_sum(index: Index, corpus: list[Document]) -> None:
    result = index.search(corpus[3], Request(k=1))
    other = result.to_dict()
    other["hits"][0]["parts"][1]["contribution"] += 0.02
    (change,) = compare_results(result.to_dict(n_pairs=1), other).changes
    (cause,) = change.causes
    assert (cause.query_section, cause.after - cause.before) == ("", pytest.approx(0.02))
    assert "+0.0200  other section pairs" in differences_text(compare_results(result.to_dict(n_pairs=1), other))
    other["hits"][0]["id"] = "a\nequal: forged\x1b"
    assert "a equal: forged\ufffd" in differences_text(compare_results(result.to_dict(), other))


def test_unlisted_sections_of_the_same_heading_are_no_difference(index: Index, corpus: list[Document]) -> None:
    result = index.search(corpus[3], Request(k=2))
    short, full = result.to_dict(n_pairs=1), result.to_dict()
    for values in (short, full):
        for part in (part for hit in values["hits"] for part in hit["parts"] if part["query_section"]):
            part["query_section"]["heading"] = part["target_section"]["heading"] = "Same"
    assert compare_results(short, full).is_equal


def test_hits_that_came_and_went_are_named_with_their_sections(values: dict[str, Any]) -> None:
    other = copy.deepcopy(values)
    gone = other["hits"].pop(1)
    other["hits"][1]["rank"] = 2
    found = compare_results(values, other, is_there=lambda doc_id: doc_id != gone["id"])
    moved, removed = found.changes
    assert (moved.rank_before, moved.rank_after, moved.note) == (3, 2, "same score, moved by other hits")
    assert (removed.doc_id, removed.rank_after, removed.note) == (gone["id"], None, "removed from the index")
    assert removed.causes[0].before == max(part["contribution"] for part in gone["parts"])
    added = compare_results(other, values, was_there=lambda doc_id: False).changes
    assert [change.note for change in added if change.rank_before is None] == ["added to the index"]


def test_changed_content_and_surroundings_are_named(values: dict[str, Any], tmp_path: Path) -> None:
    other = copy.deepcopy(values)
    other["hits"][0] |= {"content": "0" * 64, "score": 0.5}
    other["query"]["content"] = "0" * 64
    other["reference"] = 7
    other["provenance"]["encoder"]["fingerprint"] = "e" * 32
    other["provenance"]["index"] |= {"generation": 9, "n_documents": 61, "fingerprint": "d" * 32}
    other["provenance"]["parameters"]["k"] = 4
    found = compare_results(values, other)
    assert found.changes[0].note == "content changed"
    assert found.reasons == (
        "the query has another content",
        f"reference: {values['reference']}, now 7",
        f"encoder: fake ({'f' * 12}), now fake ({'e' * 12})",
        "documents: 60, now 61",
        "generation: 1, now 9",
        f"index: fingerprint {values['provenance']['index']['fingerprint'][:12]}, now {'d' * 12}",
        "k: 3, now 4",
    )
