"""Sections and chunks of a text, and its units."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import QueryError
from engine.text.document import Document
from engine.text.segmentation import (
    MAX_SECTION_CHARS,
    Heading,
    Section,
    TokenWindow,
    _is_abbreviation,
    divide,
    fill_windows,
    sentence_starts,
)
from engine.text.units import Unit, divide_by
from tests.cases import cases
from tests.fakes import make_document

TEXT = st.text(st.sampled_from("ab .\n\f\t!?A1é\u3000-"), max_size=600) | st.text(max_size=200)


@st.composite
def headed_texts(draw: st.DrawFn) -> tuple[str, list[Heading]]:
    text = draw(TEXT) * draw(st.sampled_from([1, 1, 1, 40]))
    starts = draw(st.lists(st.integers(0, len(text)), max_size=12))
    return text, [Heading(f"h{number}", draw(st.integers(1, 4)), start) for number, start in enumerate(starts)]


@given(headed_texts())
def test_sections_cover_any_text_without_gaps(given_text: tuple[str, list[Heading]]) -> None:
    text, headings = given_text
    sections = divide(text, headings)
    assert "".join(text[section.start : section.stop] for section in sections) == text
    assert all(before.stop == after.start for before, after in pairwise(sections))
    assert all(section.stop > section.start for section in sections)


@given(headed_texts())
def test_parts_of_a_huge_section_are_numbered_from_one(given_text: tuple[str, list[Heading]]) -> None:
    sections = divide(*given_text)
    at = 0
    while at < len(sections):
        run = sections[at : at + sections[at].n_parts]
        assert [(one.part, one.n_parts, one.heading) for one in run] == [
            (number, len(run), sections[at].heading) for number in range(1, len(run) + 1)
        ]
        at += len(run)


@given(st.lists(st.integers(150, 400), min_size=1, max_size=12))
def test_merged_sections_count_every_headed_part_once(lengths: list[int]) -> None:
    text, headings = "", []
    for number, length in enumerate(lengths):
        headings.append(Heading(f"h{number}", 1, len(text)))
        text += f"h{number}\n".ljust(length, "x")
    assert sum(section.n_merged for section in divide(text, headings)) == len(lengths)


LONG = "x" * 300


@pytest.mark.parametrize(
    ("parts", "sections"),
    [
        ([], []),
        ([("", "Only this.")], [Section("", (), 0, 10)]),
        ([("", f"{LONG}\n"), ("Intro", LONG)], [Section("", (), 0, 301), Section("Intro", ("Intro",), 301, 607)]),
        ([("A", ""), ("B", LONG)], [Section("B", ("B",), 0, 304, n_merged=2)]),
        ([("A", f"{LONG}\n"), ("B", "bye")], [Section("A", ("A",), 0, 308, n_merged=2)]),
    ],
    ids=["none", "no heading", "text before a heading", "a tiny one joins the next", "a tiny last one the one before"],
)
def test_a_text_is_divided_at_its_headings(parts: list[tuple[str, str]], sections: list[Section]) -> None:
    text, headings = "", []
    for heading, body in parts:
        if heading:
            headings.append(Heading(heading, 1, len(text)))
        text += f"{heading}\n{body}" if heading else body
    assert divide(text, headings) == tuple(sections)


def test_a_path_holds_the_headings_above() -> None:
    body = "x" * 300
    text = body * 4
    headings = [Heading("A", 1, 0), Heading("B", 2, 300), Heading("C", 3, 600), Heading("D", 2, 900)]
    assert [section.path for section in divide(text, headings)] == [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D")]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Über 3 km. Öl fließt. Ärger folgt", ["Über 3 km. ", "Öl fließt. ", "Ärger folgt"]),
        ("Il part. École vide. À demain ?  «Oui.» Étrange", [
            "Il part. ", "École vide. ", "À demain ?  ", "«Oui.» ", "Étrange",
        ]),
        ("Вода течёт. Насос стоит! Почему? Он сломан", ["Вода течёт. ", "Насос стоит! ", "Почему? ", "Он сломан"]),
        ("Το νερό τρέχει. Η αντλία σταμάτησε", ["Το νερό τρέχει. ", "Η αντλία σταμάτησε"]),
        ("水が流れる。ポンプは止まる！なぜ？壊れた。", ["水が流れる。", "ポンプは止まる！", "なぜ？", "壊れた。"]),
        ("「はい。」と言った。「いいえ。」彼は去った", ["「はい。」と言った。", "「いいえ。」", "彼は去った"]),
        ("円周率は３．１４です。次", ["円周率は３．１４です。", "次"]),
        ("물이 흐른다. 펌프가 멈췄다. 왜?", ["물이 흐른다. ", "펌프가 멈췄다. ", "왜?"]),
        ("الماء يجري. هل توقفت المضخة؟ نعم", ["الماء يجري. ", "هل توقفت المضخة؟ ", "نعم"]),
        ("पानी बहता है। पंप रुका है।", ["पानी बहता है। ", "पंप रुका है।"]),
        ("ქალაქი დიდია. მდინარე გრძელია", ["ქალაქი დიდია. ", "მდინარე გრძელია"]),
        ("Siehe Abb. Drei und Nr. Vier, z.B. Wasser", ["Siehe Abb. Drei und Nr. Vier, z.B. Wasser"]),
    ],
)  # fmt: skip
def test_sentences_end_in_every_script(text: str, sentences: list[str]) -> None:
    starts = [*sentence_starts(text), len(text)]
    assert [text[start:stop] for start, stop in pairwise(starts)] == sentences


_ENGLISH = st.lists(
    st.sampled_from([*'aZ7.?!"”)[(“ \n\f-*•', "\n\n", "Mr.", "etc. ", "e.g. ", "3. ", "J. ", "NR. ", "Fig. 2"]),
    max_size=60,
).map("".join)
_ENGLISH_END = re.compile(
    r"(?<![.!?])[.!?]+[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9])|\n[ \t]*\n\s*|\f\s*|\n(?=[ \t]*(?:[-*•]|\d+[.)])\s)"
)


@given(_ENGLISH)
def test_sentences_of_english_are_those_of_stored_indexes(text: str) -> None:
    ends = [match for match in _ENGLISH_END.finditer(text) if match.end() < len(text)]
    real = [end for end in ends if text[end.start()] != "." or not _is_abbreviation(text, end.start(), end.end())]
    expected = [0, *(end.end() for end in real)]
    assert sentence_starts(text) == expected


def test_a_huge_section_is_cut_at_paragraphs_and_evenly_without_any_whitespace() -> None:
    paragraph = ("word " * 80).strip() + "\n\n"
    text = paragraph * 50  # 20,000 characters
    sections = divide(text)
    assert [(section.part, section.n_parts) for section in sections] == [(1, 3), (2, 3), (3, 3)]
    assert all(section.start % len(paragraph) == 0 for section in sections)
    sections = divide("x" * (3 * MAX_SECTION_CHARS - 2))
    assert [(section.start, section.stop) for section in sections] == [(0, 7999), (7999, 15998), (15998, 23998)]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 40))
def test_each_token_is_in_exactly_one_window_and_none_is_over_capacity(lengths: list[int], capacity: int) -> None:
    ends = [sum(lengths[: number + 1]) for number in range(len(lengths))]
    windows = fill_windows(ends, capacity)
    assert [token for window in windows for token in range(window.first, window.stop)] == list(range(ends[-1]))
    assert all(1 <= window.stop - window.first <= capacity for window in windows)


@given(st.lists(st.integers(1, 10), min_size=1, max_size=30))
def test_sentences_that_fit_are_not_cut(lengths: list[int]) -> None:
    ends = [sum(lengths[: number + 1]) for number in range(len(lengths))]
    assert {window.stop for window in fill_windows(ends, 10)} <= set(ends)


@cases(
    "lengths, capacity, windows",
    {
        "no sentence": ([], 10, []),
        "a sentence over the capacity is split": ([3, 25], 10, [(0, 3), (3, 13), (13, 23), (23, 25)]),
        "a short last window is levelled at a sentence end": ([10, 60, 95, 100, 110], 100, [(0, 60), (60, 110)]),
    },
)
def test_windows_are_filled_by_sentences(lengths: list[int], capacity: int, windows: list[tuple[int, int]]) -> None:
    assert fill_windows(lengths, capacity) == [TokenWindow(*window) for window in windows]


@given(TEXT)
def test_sentence_starts_rise_from_zero_and_lie_inside(text: str) -> None:
    starts = sentence_starts(text)
    assert starts[0] == 0
    assert all(before < after < len(text) for before, after in pairwise(starts))


def _sentences(text: str) -> list[str]:
    starts = sentence_starts(text)
    return [text[a:b].strip() for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rose.^3", "Then it fell.[12][13]", "So it was."], ["He paid Rs. 500 for it.", "It cost him."],
        ["It rained.", "We left."], ["Dr. Smith met Prof. Jones at 5 St. James.", "They spoke."],
        ["See Fig. 3 and Eq. 4, e.g. Table 2, i.e. All of it.", "Done."], ["J. R. Tolkien wrote it.", "It is long."],
        ["It continues Ser. No. 10/123, now U.S. Pat. No. 6,789,012.", "See U.S. Pat. Nos. 4,232,103 and 5,001,002."],
        ["Under Fed. R. Civ. P. 26 and Cal. Civ. Code § 12 it fails.", "So J. Biol. Chem. 12 holds."],
        ["They sued in Cal.", "Agreed, said Pat.", "He wrote an App.", "It runs."],
        ["It costs 3.14 dollars, or v. 2.0 of it.", "So be it."],
        ["The U.S. Government of Washington D.C. Agreed.", "Nobody did."], ['He said "Stop."', "She did not."],
        ["“Is it so?”", "“It is!”", "They agreed (in part.)", "Then none did."], ["Wait...", "What?", "Yes!"],
        ["As Smith et al. Showed in vol. 3, it holds.", "It does."],
        ["Items:", "- one thing", "- another", "* third", "2) fourth"], ["A title", "A paragraph follows it."],
        ["version 2.0.1 of foo.bar is out; lower case. follows here"],
    ],
)  # fmt: skip
def test_sentences_are_found_in_hard_cases(sentences: list[str]) -> None:
    between = {"Items:": "\n", "A title": "\n\n"}.get(sentences[0], " ")
    assert _sentences(between.join(sentences)) == sentences


def test_a_page_break_starts_a_sentence_and_a_run_of_dots_takes_linear_time() -> None:
    assert _sentences("end of page\fnext page") == ["end of page", "next page"]
    assert sentence_starts("contents " + "." * 200_000 + "7") == [0]


CLAIMS = (
    "1. A fox trap with a door.\n2. The trap of claim 1,\n"
    "5. wide\nas a river.\n3) The trap of claim 2, where the door is red.\n"
)


def patent() -> Document:
    body, head = "The invention catches foxes at night.\n", "What is claimed is:\n"
    text = body + head + CLAIMS
    sections = (
        Section("Description", ("Description",), 0, len(body)),
        Section("What is claimed is:", ("What is claimed is:",), len(body), len(text)),
    )
    return Document("p", "Trap", text, sections)


def texts(document: Document) -> list[str]:
    return [document.text[section.start : section.stop] for section in document.sections]


def test_claims_are_sections_and_the_only_rows() -> None:
    found = divide_by(patent(), Unit.CLAIM)
    assert texts(found.document) == [
        "The invention catches foxes at night.\n",
        "What is claimed is:\n",
        "1. A fox trap with a door.\n",
        "2. The trap of claim 1,\n5. wide\nas a river.\n",
        "3) The trap of claim 2, where the door is red.\n",
    ]
    assert [found.document.sections[row].heading for row in found.rows] == ["Claim 1", "Claim 2", "Claim 3"]
    assert found.rows == (2, 3, 4)


def test_a_document_without_claims_is_refused_with_the_next_step() -> None:
    with pytest.raises(QueryError, match=r"^d has no numbered claims below .*--by section"):
        divide_by(make_document("d", "fox and river"), Unit.CLAIM)


def test_sections_stay_as_they_are_and_sentences_become_sections() -> None:
    first, second = "Yes. The old fox crosses the wide river at night. ", "It never comes back to the house."
    document = Document("d", "d", first + second, (Section("A", ("A",), 0, len(first + second)),))
    found = divide_by(document, Unit.SENTENCE)
    assert texts(found.document) == [first, second]
    assert found.rows == (0, 1) and found.document.sections[0].path == ("A",)
    assert divide_by(patent(), Unit.SECTION).document == patent()
    assert divide_by(patent(), Unit.SECTION).rows == (0, 1)


@pytest.mark.parametrize(
    ("claim", "elements"),
    [
        ("1. A pump comprising: two seals (one red; one blue); and a drain, wherein the drain opens below.",
         ["1. A pump comprising:", "two seals (one red; one blue); and", "a drain,", "wherein the drain opens below."]),
        ("1. A pump, characterised in that it has a rotor comprising a shaft.",
         ["1. A pump, characterised in that", "it has a rotor comprising a shaft."]),
        ("1. The pump of claim 4, wherein the drain is shut; and it leaks.",
         ["1. The pump of claim 4, wherein the drain is shut; and", "it leaks."]),
        ("1. Pumpe, dadurch gekennzeichnet, dass sie leckt, wobei sie ruht.",
         ["1. Pumpe, dadurch gekennzeichnet, dass", "sie leckt,", "wobei sie ruht."]),
        ("1. A method comprising:\n\n(a) reading;\n\n(b) writing.",
         ["1. A method comprising:", "(a) reading;", "(b) writing."]),
        ("1. A method comprising, in turn;\n\nwherein\n\nj is 1; and,\n\n(b) writing.",
         ["1. A method comprising,", "in turn;", "wherein\n\nj is 1; and,", "(b) writing."]),
        ("1. A method, which includes\nthe following steps: reading; writing.",
         ["1. A method, which includes\nthe following steps:", "reading;", "writing."]),
    ],
    ids=["list", "characterised", "dependent", "german", "steps", "marks", "following"],
)  # fmt: skip
def test_an_element_is_the_preamble_or_a_limitation(claim: str, elements: list[str]) -> None:
    found = divide_by(make_document("d", [("Claims", claim)]), Unit.ELEMENT)
    rows = [found.document.sections[row] for row in found.rows]
    assert [found.document.text[row.start : row.stop].strip() for row in rows] == elements
    assert [row.heading for row in rows] == [f"Claim 1.{number}" for number in range(1, len(elements) + 1)]
    assert "".join(texts(found.document)) == found.document.text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1-3. (canceled)\n4. A pump.\n5 (cancelled)\n6. A drain.\n", ["Claims 1–3", "Claim 4", "Claim 5", "Claim 6"]),
        *((text, ["Claim 1", "Claim 2"]) for text in (
            "1\\. A pump.\n\n2\\. A drain.\n", "(1) A pump.\n\n(2) A drain.\n", "[1] A pump.\n\n[2] A drain.\n",
            "Claim 1 - A pump.\n\nClaim 2 - A drain.\n", "【請求項1】 A pump.\n\n【請求項2】 A drain.\n",
            "- 1. A pump.\n- 2. A drain.\n", "1. A pump.\n1. A drain.\n", "1.- A pump.\n\n2.- A drain.\n",
            "### Claim 1\n\nA pump.\n\n### Claim 2\n\nA drain.\n", "1.\nA pump.\n2.\nA drain.\n",
            "Claim 1. A pump.\n\nClaim 2. A drain.\n", "Claim 1\nA pump.\nClaim 2\nA drain.\n", "1.A pump.\n2.A tub.\n",
            "【請求項１】\nA pump.\n【請求項２】\nA drain.\n", "[c1] A pump.\n[c2] A drain.\n",
            "1.一种水泵，包括转子。\n2、一种阀，包括座。\n", "Claim 1 (Original) A pump.\nClaim 2 (New) A drain.\n",
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("heading", [
    "Claims", "Patentansprüche", "What is claimed is:", "特許請求の範囲", "CLAIMS (as amended)",
    "I claim as my invention:", "Having described the pump, what is claimed as new is:", "Claim(s)", "In the Claims",
    "Having described the pump, I claim:", "We hereby claim:", "The claims are:", "Zastrzeżenia patentowe",
    "Patentkrav", "Формула изобретения", "Schutzansprüche", "【特許請求の範囲】", "Reivindicações",
    "Amendments to the Claims:", "The embodiments in which a privilege is claimed are defined as follows:",
    "What is claimed as new and desired to be protected by Letters Patent of the United States is:",
])  # fmt: skip
def test_claims_are_found_under_every_heading_and_in_a_short_text(text: str, names: list[str], heading: str) -> None:
    for document in (make_document("d", [(heading, text)]), Document.from_text(f"Pump\n\n{heading}\n\n{text}")):
        found = divide_by(document, Unit.CLAIM)
        assert [found.document.sections[row].heading for row in found.rows] == names


def test_a_claim_across_the_parts_of_a_long_section_is_whole() -> None:
    text = "1. A pump comprising a housing, and many more words.\n2. A drain.\n"
    middle = text.index("and many")
    sections = tuple(
        Section("Claims", ("Claims",), *edges, part=part, n_parts=2)
        for part, edges in enumerate([(0, middle), (middle, len(text))], start=1)
    )
    found = divide_by(Document("d", "d", text, sections), Unit.CLAIM)
    assert texts(found.document) == text.splitlines(keepends=True)
