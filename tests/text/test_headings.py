"""Headings, their numbers, and kinds of sections."""

import pytest

from engine.text.document import Document
from engine.text.headings import LineKind, could_be_title, find_headings, is_contents_line, parse, roman_value
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import Heading, Section, divide

TEXT = "This is the body of a section, which runs on for a line or so.\n"


def titles(text: str) -> list[tuple[int, str]]:
    headings = find_headings(text)
    assert all(" ".join(heading.title.split()) in " ".join(text[heading.start :][:200].split()) for heading in headings)
    return [(heading.level, heading.title) for heading in headings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"1. Aim\n\n{TEXT}\n1.1 Purpose\n\n{TEXT}\n2. Methods\n{TEXT}\nA. Tables\n\n{TEXT}\nA.1 More\n\n{TEXT}",
         [(1, "1. Aim"), (2, "1.1 Purpose"), (1, "2. Methods"), (1, "A. Tables"), (2, "A.1 More")]),
        (f"I. AIM\n\n{TEXT}\nII. METHODS\n\n{TEXT}\nA. Data\n\n{TEXT}\nB. Model\n\n{TEXT}\nIII. RESULTS\n\n{TEXT}",
         [(1, "I. AIM"), (1, "II. METHODS"), (2, "A. Data"), (2, "B. Model"), (1, "III. RESULTS")]),
        (f"=====\nTitle\n=====\n\nFirst\n-----\n{TEXT}\nDeeper\n~~~~~~\n{TEXT}\nSecond\n------\n{TEXT}",
         [(1, "Title"), (2, "First"), (3, "Deeper"), (2, "Second")]),
        (f"{TEXT}\nSUMMARY OF THE INVENTION\n\n{TEXT}", [(1, "SUMMARY OF THE INVENTION")]),
        (f"ITEM 9A(T). CONTROLS\n\n{TEXT}\n\n  Items 1 and 2. Business.\n\n{TEXT}\n\n"
         "Item 5. Market for Registrant's Common Equity, Related Stockholder Matters and Issuer\n"
         f"Purchases of Equity Securities\n\n{TEXT}",
         [(2, "ITEM 9A(T). CONTROLS"), (2, "Items 1 and 2. Business."), (2, "Item 5. Market for Registrant's Common "
          "Equity, Related Stockholder Matters and Issuer Purchases of Equity Securities")]),
        (f"{TEXT}\n{' ' * 16}FIRST CAUSE OF ACTION\n{' ' * 20}(Negligence)\n{TEXT}", [(1, "FIRST CAUSE OF ACTION")]),
        (f"{TEXT}\nMAX_SIZE = 10\n\n{TEXT}\nEND\n\n{TEXT}\nIF (A > B) THEN C\n\n{TEXT}", []),
        ("PLEASE READ THIS\n\nALL OF IT\n\nNOW AND HERE\n\nso be it\n", []),
        (f"CHAPTER II\n\nArticle 5\n\n{TEXT}\nArticle 6: Duties\n\n{TEXT}",
         [(2, "CHAPTER II"), (3, "Article 5"), (3, "Article 6: Duties")]),
        (f"1. Setup\n\n{TEXT}\n1. Open the box\n\n2. Take it out\n\n3. Switch it on\n\n{TEXT}", [(1, "1. Setup")]),
        ("Buy:\n\n1. Milk\n2. Bread\n3. Eggs\n", []),
        ("1. Introduction ..... 1\n\n2. Methods ..... 5\n\n3. Results      9\n\n"
         f"1. Introduction\n\n{TEXT}\n2. Methods\n\n{TEXT}", [(1, "1. Introduction"), (1, "2. Methods")]),
        (f"1. Introduction\n\n2. Methods\n\n{TEXT}\n1. Introduction\n\n{TEXT}", [(1, "1. Introduction")]),
        (f"OPINION\n\nI\n\n{TEXT}\nA\n\n{TEXT}\nII\n\n{TEXT}", [(1, "OPINION"), (1, "I"), (2, "A"), (1, "II")]),
        (f"I\n\n{TEXT}", []),
        (f"Kapitel 1\nDas Wehr\n\n{TEXT}\nСтатья 2. Предмет\n\n{TEXT}\n第三章 船闸\n\n{TEXT}\n第四条，水门\n\n{TEXT}",
         [(2, "Kapitel 1"), (3, "Статья 2. Предмет"), (2, "第三章 船闸")]),
        (f"{TEXT}\n3.11 Python was released then, and it is the one that we use\nin all of this.\n", []),
    ],
    ids=["numbers nest", "letters under roman numbers", "underlines set levels by first use", "items",
         "capitals in the middle", "capitals", "code",
         "paragraphs in capitals", "articles under chapters", "list", "tight list", "contents",
         "contents without page numbers", "bare numbers", "one number", "other languages", "sentence with a number"],
)  # fmt: skip
def test_headings_have_levels_and_other_lines_are_none(text: str, expected: list[tuple[int, str]]) -> None:
    assert titles(text) == expected


def test_running_heads_are_not_headings() -> None:
    page = f"ACME REPORT 12\n\n{TEXT}\fACME REPORT 13\n\n{TEXT}"
    assert titles(page * 3) == []


@pytest.mark.slow
def test_more_numbered_lines_than_the_limit_are_a_list() -> None:
    assert titles("".join(f"{number % 90 + 1}. Item Name\n\n{TEXT}\n" for number in range(50_001))) == []


def test_rfc_headings_stand_left_of_indented_text() -> None:
    body = "   Text of the memo is indented by three,\n   in every line of it,\n   and goes on.\n"
    footer = "Fielding, et al.            Standards Track                     [Page 1]\n"
    page = f"{footer}\fRFC 2616        HTTP/1.1      June 1999\n\n{body}"
    text = f"Status of this Memo\n\n{body}\n1.  Purpose\n\n{body}\n{page}"
    assert titles(text) == [(1, "Status of this Memo"), (1, "1.  Purpose")]


def test_many_blank_lines_count_as_a_few() -> None:
    text = (
        f"Title\n=====\n\n{TEXT}"
        + "\n \n" * 50
        + f"1. Introduction{chr(10) * 40}{TEXT}{chr(10) * 9}SUMMARY OF ALL\n\n{TEXT}"
    )
    assert titles(text) == [(1, "Title"), (1, "1. Introduction"), (1, "SUMMARY OF ALL")]


def centred(line: str, width: int = 62) -> str:
    return " " * ((width - len(line)) // 2) + line + "\n"


@pytest.mark.parametrize(
    "line",
    ["I. BACKGROUND", "II", "III. The Rule", "SYLLABUS", "OPINION OF THE COURT", "Syllabus", "Opinion of the Court",
     "VANE, J., dissenting.", "JUSTICE OKABE, concurring in the judgment.", "CHAPTER II", "PER CURIAM.",
     "Statement of the Case", "Findings of Fact and Conclusions of Law", "Procedural History", "Analysis",
     "Discussion of the/Second Claim", "MOTION OF THE KEEPER/TO DISMISS", "I./Facts of the Weir",
     "A Summary of/the/Issues",
     "I. THE DISTRICT COURT ERRED IN/DISMISSING THE COMPLAINT.", "I. The Duty of the/Upper Owner"],
)  # fmt: skip
def test_a_short_line_in_the_middle_is_a_heading(line: str) -> None:
    before = centred("I") + f"\n{TEXT}\n" + centred("II") + f"\n{TEXT}\n" if line.startswith("III") else ""
    block = "".join(map(centred, line.split("/")))
    line = line.replace("/", " ")
    assert titles(f"{TEXT}\n{before}{block}\n{TEXT}")[-1][1] == line
    assert titles(f"{TEXT}\n{before}    {line} and so on\n\n{TEXT}")[-1:] != [(1, line)]


def test_parts_of_an_opinion_nest_and_can_stand_above_the_parties() -> None:
    close = f"{TEXT}{centred('II')}{TEXT}{centred('A')}{centred('1')}{TEXT}{centred('2')}{TEXT}{centred('B')}{TEXT}"
    text = f"{centred('Syllabus')}\n{TEXT}\n{centred('Opinion of the Court')}\n{TEXT}{centred('I')}{close}"
    text += f"\n{centred('VANE, J., dissenting.')}\n{TEXT}\n{centred('I')}\n{TEXT}"
    assert titles(text) == [
        (1, "Syllabus"), (1, "Opinion of the Court"), (2, "I"), (2, "II"), (3, "A"), (4, "1"), (4, "2"), (3, "B"),
        (1, "VANE, J., dissenting."), (2, "I"),
    ]  # fmt: skip
    assert titles(f"{centred('Syllabus')}\n{centred('VANE v. LOCK')}\n{TEXT}") == [(1, "Syllabus")]


VERSE = "The keeper lifts the gate at dawn\nAnd lets the river through\nAnd lets the river through\n\n"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(f"{centred('THE LOCK')}\n{VERSE}", id="poem"),
        pytest.param(f"{centred('I')}\n{VERSE}\n{centred('II')}\n{VERSE}", id="numbered-poem"),
        pytest.param("".join(centred(line) for line in VERSE.split("\n")), id="centred-poem"),
        pytest.param(f"{centred('NO VESSEL SHALL PASS AT NIGHT.')}\n", id="quote"),
        pytest.param("          NO VESSEL SHALL PASS\n          THE LOCK AT NIGHT\n\n", id="block-quote"),
        pytest.param(f"{centred('VANE AND LOCK')}{centred('12 QUAY STREET')}{centred('WEIRTON')}\n", id="address"),
        pytest.param(f"{centred('1 Lock Lane')}\n", id="line-of-an-address"),
        pytest.param(f"{centred('FIGURE 1. MAP OF THE WEIR')}\n", id="caption"),
        pytest.param(f"{centred('SUPREME COURT OF THE WEIR')}\n{centred('No. 12')}\n", id="court"),
        pytest.param(f"{centred('VANE v. LOCK')}\n", id="parties"),
        pytest.param("".join(f"{centred(str(page))}\n{TEXT}\n" for page in range(1, 6)), id="page-numbers"),
        pytest.param("".join(f"{centred(f'- {page} -')}\n{TEXT}\n" for page in range(1, 6)), id="marked-page-numbers"),
        pytest.param(f"{TEXT[:30]}\n{centred('I')}\n{TEXT[31:]}", id="inside-a-sentence"),
        pytest.param(f"{centred('V. The Rule')}\n", id="out-of-sequence"),
        pytest.param(f"{' ' * 44}ANN VANE\n\n", id="on-the-right"),
        pytest.param(f"{centred('Ann Vane')}\n", id="name"),
        pytest.param(f"{centred('Ann Vane, Keeper')}{centred('Judgment House')}{centred('Weirton')}{TEXT}", id="block"),
        pytest.param(f"{centred('The issue is the gate')}\n", id="sentence"),
        pytest.param(f"{centred('The Summary of')}\n{VERSE}", id="title-of-verse"),
    ],
)
def test_other_centred_lines_are_not_headings(block: str) -> None:
    assert titles(f"{TEXT}\n{block}{TEXT}\n{TEXT}") == []


@pytest.mark.parametrize(
    ("line", "kind", "number", "level", "title"),
    [
        ("1. Introduction", LineKind.DECIMAL, (1,), 1, "Introduction"), ("2.3 Foo", LineKind.DECIMAL, (2, 3), 2, "Foo"),
        ("2.3.  foo-option", LineKind.DECIMAL, (2, 3), 2, "foo-option"),
        ("0. Definitions.", LineKind.DECIMAL, (0,), 1, "Definitions."), ("A.1 Bar", LineKind.LETTER, (1, 1), 2, "Bar"),
        ("IV. METHODS", LineKind.ROMAN, (4,), 1, "METHODS"), ("Section 3", LineKind.NAMED, (), 3, ""),
        ("Article 5: Scope", LineKind.NAMED, (), 3, "Scope"), ("§ 4", LineKind.NAMED, (), 3, ""),
        ("CHAPTER IV", LineKind.NAMED, (), 2, ""), ("Appendix A. Proofs", LineKind.NAMED, (), 1, "Proofs"),
    ],
)  # fmt: skip
def test_numbers_are_read(line: str, kind: LineKind, number: tuple[int, ...], level: int, title: str) -> None:
    numbered = parse(line)
    assert (numbered.kind, numbered.number, numbered.level, numbered.title) == (kind, number, level, title)


@pytest.mark.parametrize(
    "line",
    [
        "1. Introduction ........ 3", "1. Introduction . . . . 3", "2.1 Methods    17", "3 apples were eaten",
        "1. Wash the car, then dry it.", "Section 3 of the Act provides otherwise",
        "Section 3 This is how it goes on", "Article I wrote about this", "1999 Smith", "12. Name      Value",
        "1. First the pump is started. Then the valve is opened", "4.2",
    ],
)  # fmt: skip
def test_other_lines_are_not_headings(line: str) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(("digits", "value"), [("IV", 4), ("xl", 40), ("XCIX", 99), ("cxli", 141)])
def test_roman_numbers_have_their_values(digits: str, value: int) -> None:
    assert roman_value(digits) == value


def test_sentences_are_no_titles_and_contents_have_page_numbers() -> None:
    titles = ["Results and Discussion", "We show results.", "1234 5678"]
    assert [*map(could_be_title, titles)] == [True, False, False]
    assert [*map(is_contents_line, ["Methods ..... 12", "Methods\t12", "Methods of 1912"])] == [True, True, False]


BODY = "Pumps move water from the lower to the upper basin, and the valves keep it there until it is wanted. " * 4
CITED = (
    "D. W. K. Andrews. Tests for parameter instability and change. Econometrica, 61:821–856, 1993.\n\n"
    "G. C. Chow. Tests of equality between sets of coefficients. Econometrica, 28:591–605, 1960.\n\n"
    "B. E. Hansen. Testing for instability in linear models. Journal of Policy Modeling, 14:517–533, 1992.\n\n"
) * 3
NAMED = "Bradner, S., Key words for use in documents, BCP 14, RFC 2119, March 1997. " * 4
THANKS = "We thank the reviewers for their careful reading and their many helpful comments on the text. " * 3
RELATED = (
    "Earlier work uses features of words (Smith et al., 2003; Lee et al., 2005). Later systems learn these from data "
    "(Kim et al., 2008), which Jones et al. (2009) apply to trees and Lin et al. (2010) to graphs of sentences. "
) * 6


def document(*parts: tuple[str, str]) -> Document:
    text, headings = "", []
    for heading, body in parts:
        headings.append(Heading(heading, 1, len(text)))
        text += f"{heading}\n\n{body}\n\n"
    return Document("a", "a", text, divide(text, headings))


@pytest.mark.parametrize(
    ("heading", "body", "kind"),
    [
        ("References", CITED, SectionKind.REFERENCES),
        ("7. REFERENCES", CITED, SectionKind.REFERENCES),
        ("Normative References", NAMED, SectionKind.REFERENCES),
        ("Literaturverzeichnis", CITED, SectionKind.REFERENCES),
        ("Références bibliographiques", CITED, SectionKind.REFERENCES),
        ("参考文献", CITED, SectionKind.REFERENCES),
        ("Список литературы", CITED, SectionKind.REFERENCES),
        ("The rest", CITED, SectionKind.REFERENCES),  # detected by its text alone
        ("References", BODY, SectionKind.BODY),  # of a programming language
        ("Notes", RELATED, SectionKind.BODY),
        ("2 Related work", RELATED, SectionKind.BODY),
        ("Acknowledgments", THANKS, SectionKind.ACKNOWLEDGEMENTS),
        ("Danksagung", BODY, SectionKind.ACKNOWLEDGEMENTS),
        ("Acknowledgments", BODY, SectionKind.BODY),  # of packets
        ("Appendix", BODY, SectionKind.APPENDIX),
        ("Appendix B: Proofs", BODY, SectionKind.APPENDIX),
        ("Anhang 2 – Tabellen", BODY, SectionKind.APPENDIX),
        ("Appendix removal by surgery", BODY, SectionKind.BODY),
        ("Copyright", "Copyright (c) 2019 Ann Lee. All rights reserved. " * 6, SectionKind.BOILERPLATE),
        ("License", "The field names the conditions under which a package may be used. " * 5, SectionKind.BODY),
        ("Authors' Addresses", BODY, SectionKind.BOILERPLATE),
    ],
)
def test_a_section_at_the_end_has_a_kind(heading: str, body: str, kind: SectionKind) -> None:
    made = document(("1 Pumps", BODY * 8), (heading, body))
    assert section_kinds(made) == (SectionKind.BODY, kind)


def test_a_copyright_section_in_the_middle_and_a_conclusion_that_cites_are_body() -> None:
    made = document(
        ("1 Rights", BODY * 4), ("Copyright", "Copyright (c) 2019 marks a work. " * 8), ("3 Uses", BODY * 8)
    )
    assert set(section_kinds(made)) == {SectionKind.BODY}
    made = document(("1 Pumps", BODY), ("Conclusion", BODY + CITED))
    assert section_kinds(made)[1] is SectionKind.BODY


def test_sections_below_or_after_the_references_have_the_kind_of_their_place() -> None:
    text = BODY + CITED
    sections = (
        Section("1 Pumps", ("1 Pumps",), 0, len(BODY)),
        Section("Papers", ("References", "Papers"), len(BODY), len(text)),
    )
    assert section_kinds(Document("a", "a", text, sections))[1] is SectionKind.REFERENCES
    made = document(("A First things", BODY), ("References", CITED), ("A Proofs", BODY), ("B.1 Tables", BODY))
    assert section_kinds(made) == (
        SectionKind.BODY, SectionKind.REFERENCES, SectionKind.APPENDIX, SectionKind.APPENDIX,
    )  # fmt: skip
